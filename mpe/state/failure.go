package state

import (
	"fmt"
	"time"
)

// MaxFailures is the maximum number of recent failures that a daemon stores.
const MaxFailures = 100

// Failure is an operation that failed.
type Failure struct {
	// Time is the time at which the failure occurred. If Count is more than 1, it is the time of the last failure.
	Time time.Time `json:"time"`
	// Rank is the local rank. Peer is the other rank, or nil if the operation did not concern a particular peer.
	Rank      int       `json:"rank"`
	Peer      *int      `json:"peer"`
	Operation Operation `json:"operation"`
	// State is the state that the operation was waiting in, such as WAIT_CLEAR, or empty if unknown.
	State string `json:"state,omitempty"`
	// Reason is the error.
	Reason string `json:"reason"`
	// Count is the number of consecutive identical failures.
	Count int `json:"count"`
	// Record is the path of a file with the packets recorded before the failure. It is empty if no such file exists.
	Record string `json:"record,omitempty"`
}

// What describes the operation, its peer and its state: "send to rank 2, WAIT_CLEAR".
func (f *Failure) What() string {
	text := string(f.Operation)
	switch {
	case f.Peer == nil && f.Operation == OperationReceive:
		text += " from any rank"
	case f.Peer == nil:
	case f.Operation == OperationReceive:
		text += fmt.Sprintf(" from rank %d", *f.Peer)
	default:
		text += fmt.Sprintf(" to rank %d", *f.Peer)
	}
	if f.State != "" {
		text += ", " + f.State
	}
	return text
}
