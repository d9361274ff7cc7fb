// Package rankmap says which rank lives at which address, and which rank a packet came from.
// A Map is immutable: a changed cluster is a new Map. The package must never open a socket,
// look up a name, or know an operating system.
package rankmap
