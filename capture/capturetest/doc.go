// Package capturetest makes recordings for tests: packet by packet, by corrupting
// a recorded one, or large ones of traffic between many ranks (Generate).
//
// It shares no code with the reader that it tests. It trusts its caller, and is
// not for anything but tests: bad arguments make it panic.
package capturetest
