// Package pcapng reads and writes recordings. It writes and reads pcapng files, with comments on packets and notes
// about ranks, and reads classic pcap files.
//
// A Writer writes the payload of datagrams and streams (Unit) as IP packets with UDP and TCP headers. A Reader
// returns packets as they were recorded (Record); package capture decodes them.
//
// The package is pure: it has no clock, and does I/O only through the caller's io.Reader and io.Writer. It never trusts
// a length in a file: a reader needs constant memory and returns an error if the file is invalid.
package pcapng
