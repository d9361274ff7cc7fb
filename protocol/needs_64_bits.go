package protocol

// Platforms with a 32-bit int are not supported: lengths of messages and buffers are ints everywhere, and may exceed 32
// bits. On such a platform this constant does not compile.
const _ int = 1 << 62
