// Package protocol is the wire format of ZRLMPI: the 32-byte header framed by 0x96, the packet types and calls, how a
// DATA message is fragmented into datagrams, and how the same packets are framed on a TCP stream. It also has the
// 80-byte header of the extended profile and its checksum.
//
// It encodes, decodes and measures bytes. It must never keep state between packets, examine a clock, touch a socket, or
// import another package of this module: the engine, the packet tools and the tests all use it, and must agree on the
// meaning of every byte. Valid packets are handled without allocation.
//
// docs/ZRLMPI_protocol.md specifies the format. Where the public protocol page and the deployed nodes differ, the
// profile selects one of them.
package protocol
