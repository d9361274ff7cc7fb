package protocol

// This constant does not compile on platforms with a 32-bit int. They are not supported, because the lengths of
// messages and buffers have type int everywhere, and may exceed 32 bits.
const _ int = 1 << 62
