// Package rankmap maps ranks to their addresses, and the source address of a packet to its rank. A Map is immutable: a
// change of the cluster requires a new Map. The package must never open a socket, look up a name, or depend on an
// operating system.
package rankmap
