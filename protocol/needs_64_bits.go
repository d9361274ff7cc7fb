package protocol

// A platform whose int has 32 bits is not supported: lengths of messages and buffers, which are ints everywhere, exceed
// them. The compiler refuses this constant there.
const _ int = 1 << 62
