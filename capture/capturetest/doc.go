// Package capturetest makes recordings for tests: packet by packet, by corrupting a recorded one, or large ones of
// traffic between many ranks (Generate).
//
// It shares no code with the reader under test. It is for tests only and panics on invalid arguments.
package capturetest
