package mpi

import (
	"math"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Values with a meaning of their own.
const (
	// AnySource as the source of a receive or probe matches every rank of the
	// communicator.
	AnySource = -1
	// AnyTag as the tag of a receive or probe matches every tag.
	AnyTag = -1
	// ProcNull as a source or destination makes a call do nothing, and
	// succeed at once. It stands for the neighbours beyond an edge.
	ProcNull = -2
	// Undefined is a rank, count, index or colour that does not exist.
	Undefined = -32766
	// TagUB is the largest tag.
	TagUB = math.MaxInt32
)

// Status describes a message that was received or found by a probe. Calls that
// have no message to describe, because they sent one or had nothing to wait
// for, give the empty status: source AnySource, tag AnyTag, no bytes.
type Status struct {
	// Source is the sender's rank in the communicator, or ProcNull.
	Source int
	// Tag is the sender's. A peer whose wire carries no tags is taken to have
	// sent the tag that the receive asked for, or 0 if it asked for any.
	Tag int
	// Bytes is how many bytes are in the buffer, or would be after a receive
	// of what a probe found. It is Undefined where a probe cannot know:
	// SEND_REQUEST of deployed nodes does not carry the length.
	Bytes int64
	// Cancelled is true if Cancel has cancelled the operation.
	Cancelled bool
	// Err is this request's own error. Waitall, Waitsome, Testall and
	// Testsome set it, because they return one error for all.
	Err error
}

var emptyStatus = Status{Source: AnySource, Tag: AnyTag}

var nullStatus = Status{Source: ProcNull, Tag: AnyTag}

// Count is the number of T in a message, or Undefined if it is not a whole
// number of them or not known.
func Count[T Number](s Status) int {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if s.Bytes < 0 || s.Bytes%size != 0 {
		return Undefined
	}
	return int(s.Bytes / size)
}

// bytesOf converts the device's size of a message.
func bytesOf(s *mpe.Status) int64 {
	if s.Bytes < 0 {
		return Undefined
	}
	return s.Bytes
}
