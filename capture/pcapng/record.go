package pcapng

import "time"

// Record is one recorded packet.
type Record struct {
	Time time.Time
	Link LinkType
	// Data is the recorded part of the packet, valid until the next record.
	Data []byte
	// Wire is the length in bytes of the packet on the wire.
	Wire int
	// Comments of the packet in the file.
	Comments []string
}

// Reader reads the packets of a file.
type Reader interface {
	// Next fills in the next packet. Its error is io.EOF at the end, and an *Error if the file is cut off or invalid.
	Next(*Record) error
	// About returns the properties of the file, as far as it has been read. Next updates them.
	About() *About
}

// Error is a fault of a file, or of reading it.
type Error struct {
	// Offset is the byte of the file at which the fault is, or where the incomplete part begins.
	Offset int64
	// Reason says what is wrong, unless Err does.
	Reason string
	// Err is io.ErrUnexpectedEOF if the file is cut off, the reader's error if it cannot be read, or nil.
	Err error
}

// Error returns the reason.
func (e *Error) Error() string {
	if e.Err != nil {
		return e.Err.Error()
	}
	return e.Reason
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }
