package pcapng

import "time"

// Record is one recorded packet.
type Record struct {
	Time time.Time
	Link LinkType
	// Data is the recorded part of the packet. It is valid until the next record is read.
	Data []byte
	// WireLen is the length in bytes of the packet on the wire.
	WireLen int
	// Comments lists the comments on the packet in the file.
	Comments []string
}

// Reader reads the packets of a file.
type Reader interface {
	// Next fills in the next packet. It returns io.EOF at the end of the file, and an *Error if the file is truncated
	// or invalid.
	Next(*Record) error
	// Metadata returns the properties of the file that have been read so far. Next updates them.
	Metadata() *Metadata
}

// Error is returned if a file is invalid or cannot be read.
type Error struct {
	// Offset is the position in bytes, in the file, of the error or of the incomplete part.
	Offset int64
	// Reason describes the error, unless Err is set.
	Reason string
	// Err is io.ErrUnexpectedEOF if the file is truncated, or the reader's error if reading fails. Otherwise it is nil.
	Err error
}

// Error returns the text of Err or, if Err is nil, Reason.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Reason
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
