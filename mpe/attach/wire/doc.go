// Package wire is shared by both sides of an attached rank: frames and their encoding, the rings in shared memory and
// the descriptor handed over for them, and the writing of frames. docs/attach.md specifies the bytes.
//
// Neither side trusts the other: no allocation depends on a frame's claims, each value in shared memory is read once,
// and every wait for the other side is bounded.
package wire
