// Package pcapng is the file format of recordings. It writes and reads pcapng files, with comments of packets and notes
// of ranks, and reads classic pcap files.
//
// A Writer takes payload of datagrams and streams (Unit) and writes IP packets with UDP and TCP headers. A Reader gives
// packets as they were recorded (Record); package capture decodes them.
//
// The package is pure: it has no clock, and does no I/O but through its caller's io.Reader and io.Writer. It never
// trusts a length in a file: a reader takes constant memory, and a file that is invalid is an error.
package pcapng
