// Package protocol is the wire format of ZRLMPI: the 32-byte header framed by
// 0x96, the packet types and calls, how a DATA message is fragmented into datagrams,
// and how the same packets are framed on a TCP stream. Beside it stands the
// 80-byte header of the extended profile, with its checksum.
//
// It encodes, decodes and measures bytes. It must never keep state between
// packets, examine a clock, touch a socket, or import another package of this
// module: the live engine, the packet tools and the tests all use it, and
// must agree on what a byte means. Nothing here allocates on the path of a
// good packet.
//
// The rules are those of docs/ZRLMPI_protocol.md. Where the public protocol
// page and the deployed nodes differ, the profile says which of them is meant.
package protocol
