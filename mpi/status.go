package mpi

import (
	"math"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Special values for sources, tags, ranks and counts.
const (
	// AnySource as the source of a receive or probe matches every rank of the communicator.
	AnySource = -1
	// AnyTag as the tag of a receive or probe matches every tag.
	AnyTag = -1
	// ProcNull as a source or destination makes a call a no-op that succeeds immediately. It represents the
	// neighbours beyond an edge.
	ProcNull = -2
	// Undefined is the value of a rank, count, index or colour that does not exist.
	Undefined = -32766
	// TagUB is the largest tag.
	TagUB = math.MaxInt32
)

// Status describes a received or probed message. Calls that have no message to describe, because they sent one
// or had nothing to wait for, return the empty status: source AnySource, tag AnyTag, no bytes.
type Status struct {
	// Source is the sender's rank in the communicator, or ProcNull.
	Source int
	// Tag is the sender's tag. If the peer's wire does not support tags, it is the tag that the receive asked
	// for, or 0 if that was AnyTag.
	Tag int
	// Bytes is the number of bytes received or, for a probe, the number of bytes that a receive would get. It is
	// Undefined if a probe cannot know the length, because the SEND_REQUEST of a deployed node does not contain it.
	Bytes int64
	// Cancelled reports whether the operation was cancelled by Cancel.
	Cancelled bool
	// Err is the error of this request. Only Waitall, Waitsome, Testall and Testsome set it, because these
	// return one error for all requests.
	Err error
}

var emptyStatus = Status{Source: AnySource, Tag: AnyTag}

var nullStatus = Status{Source: ProcNull, Tag: AnyTag}

// Count returns the number of T in a message, or Undefined if the length is unknown or is not a multiple of the size of
// T.
func Count[T Number](status Status) int {
	var zero T
	size := int64(unsafe.Sizeof(zero))
	if status.Bytes < 0 || status.Bytes%size != 0 {
		return Undefined
	}
	return int(status.Bytes / size)
}

// statusBytes converts a message's size, as reported by the device, to Status.Bytes.
func statusBytes(s *mpe.Status) int64 {
	if s.Bytes < 0 {
		return Undefined
	}
	return s.Bytes
}
