// Package wire has what both ends of an attached rank share: frames and what they say, the rings in memory and the
// descriptor that is handed over for it, and the writing of frames. docs/attach.md specifies the bytes.
//
// Neither end trusts the other one: nothing is allocated by what a frame claims, what is read from shared memory is read
// once, and nothing waits for the other end without a bound.
package wire
