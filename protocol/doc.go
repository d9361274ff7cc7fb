// Package protocol implements the wire format of ZRLMPI: the 32-byte header framed by 0x96, the packet types and calls,
// the fragmentation of a DATA message into datagrams, and the framing of the same packets on a TCP stream. It also
// implements the 80-byte header of the extended profile and its checksum.
//
// It encodes, decodes and measures packets. It must never keep state between packets, read a clock, use a socket, or
// import another package of this module, because the engine, the packet tools and the tests all use it and must agree
// on the meaning of every byte. Handling a valid packet does not allocate memory.
//
// docs/ZRLMPI_protocol.md specifies the format. Where the public protocol page and the deployed nodes differ, the
// Profile determines which of them to follow.
package protocol
