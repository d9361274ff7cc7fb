// Package wire contains the code that both sides of an attached rank share: frames and their encoding, the
// rings in shared memory, the handover of the memory's descriptor, and the writing of frames. docs/attach.md
// specifies the bytes.
//
// Neither side trusts the other. No frame determines how much memory is allocated, each value in shared memory
// is read only once, and no side waits for the other without a limit.
package wire
