package capture

import (
	"fmt"
)

// unknownOffset is the Offset of an error whose place in the file is not known.
const unknownOffset = -1

// TruncatedError says that a recording ends in the middle of something. What
// came before was read, and is good. A recorder that is still at work, or was
// killed, leaves such a file.
type TruncatedError struct {
	// Name is the recording's, as it was opened.
	Name string
	// Packet is how many whole packets were read.
	Packet int64
	// Offset is the byte of the file at which the incomplete part begins,
	// or -1 if it is not known, as in a compressed file.
	Offset int64
	// Err is io.ErrUnexpectedEOF.
	Err error
}

// Error says how many packets were read.
func (e *TruncatedError) Error() string {
	return fmt.Sprintf("%s: recording is cut off%s, after %s", e.Name, at(e.Offset), counted(e.Packet, "packet"))
}

// Unwrap returns Err.
func (e *TruncatedError) Unwrap() error { return e.Err }

// FormatError says that a file is not a recording, is one of an unknown kind, or
// is invalid from a certain byte on.
type FormatError struct {
	// Name is the recording's, as it was opened.
	Name string
	// Packet is how many packets were read before the fault.
	Packet int64
	// Offset is the byte of the file where the fault is, or -1 if it is not
	// known.
	Offset int64
	// Reason says what the file is, or what is wrong with it.
	Reason string
	// Err is the error of the decompressor, or nil.
	Err error
}

// Error says what is wrong, where, and how many packets were good.
func (e *FormatError) Error() string {
	s := e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	if e.Packet > 0 || e.Offset > 0 {
		s = fmt.Sprintf("recording is corrupt%s, after %s: %s", at(e.Offset), counted(e.Packet, "packet"), s)
	}
	return e.Name + ": " + s
}

// Unwrap returns Err.
func (e *FormatError) Unwrap() error { return e.Err }

func at(offset int64) string {
	if offset == unknownOffset {
		return ""
	}
	return fmt.Sprintf(" at byte %d", offset)
}
