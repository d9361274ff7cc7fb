package capture

import (
	"fmt"
)

// unknownOffset is used as the Offset of an error whose position in the file is unknown.
const unknownOffset = -1

// TruncatedError is returned if a recording ends in the middle of a block. All packets before this block were read.
// Such a file results from a recorder that is still running or was killed.
type TruncatedError struct {
	// Name is the name of the recording, as it was opened.
	Name string
	// Packet is the number of complete packets read.
	Packet int64
	// Offset is the position in bytes of the incomplete part. It is -1 if the position is unknown, as in a compressed
	// file.
	Offset int64
	// Err is io.ErrUnexpectedEOF.
	Err error
}

// Error returns a text with the position of the incomplete part and the number of packets read.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: recording is cut off%s, after %s", e.Name, offsetText(e.Offset),
		formatCount(e.Packet, "packet"))
}

// Unwrap returns Err.
func (e *TruncatedError) Unwrap() error { return e.Err }

// FormatError is returned if a file is not a recording, has an unknown format, or is corrupt.
type FormatError struct {
	// Name is the name of the recording, as it was opened.
	Name string
	// Packet is the number of packets read before the error.
	Packet int64
	// Offset is the position in bytes of the error, or -1 if it is unknown.
	Offset int64
	// Reason describes the defect of the file. If the file is not a recording, Reason describes what it is instead.
	Reason string
	// Err is the error of the decompressor, or nil.
	Err error
}

// Error returns a text with the defect, its position and the number of valid packets.
func (e *FormatError) Error() string {
	s := e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Packet > 0 || e.Offset > 0 {
		s = fmt.Sprintf("recording is corrupt%s, after %s: %s", offsetText(e.Offset), formatCount(e.Packet, "packet"), s)
	}
	return e.Name + ": " + s
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

func offsetText(offset int64) string {
	if offset == unknownOffset {
		return ""
	}
	return fmt.Sprintf(" at byte %d", offset)
}
