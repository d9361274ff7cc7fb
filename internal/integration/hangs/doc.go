// Package hangs has tests of hangs on real sockets: each must be explained by its root cause,
// whichever host is asked.
package hangs
