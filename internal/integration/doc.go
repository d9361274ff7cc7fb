// Package integration holds tests that need more than one package's doings:
// whole engines on real sockets, and programs that are not ours. It has no code
// of its own.
package integration
