// Package doctor checks whether a host and its network meet the needs of the ranks: addresses, ports, routes, path
// MTUs, buffers, clock. A Plan contains the needs of the configuration, Facts contains the answers of the operating
// system, and a status is the state of a running daemon. Examine compares them.
//
// The package opens no socket and reads no file: package doctor/system gathers the facts.
package doctor
