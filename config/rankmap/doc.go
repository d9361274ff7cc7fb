// Package rankmap says which rank lives at which address, and which rank a
// packet came from.
//
// A Map is immutable: a changed cluster is a new Map. The package knows the
// rules that deployed nodes tie to addresses (an FPGA's port, its one IP
// address per rank, the largest clusters) and names the mistake when a map
// breaks one, because a wrong map makes a cluster hang without an error.
// It must never open a socket, look up a name, or know an operating system.
package rankmap
