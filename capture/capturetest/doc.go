// Package capturetest creates recordings for tests. A test can build a recording packet by packet, corrupt an existing
// one, or generate a large one with traffic between many ranks (Generate).
//
// It shares no code with the reader under test. It panics on invalid arguments.
package capturetest
