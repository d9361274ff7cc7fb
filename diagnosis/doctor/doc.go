// Package doctor examines what a rank needs of its host and of the network: addresses, ports, routes, path MTUs,
// buffers,
// clock. A Plan is what the configuration says, Facts are what the operating system says, and a status is what a
// running
// daemon says; Examine compares them.
//
// It has no socket and reads no file: package doctor/system gathers the facts.
package doctor
