package state

import (
	"fmt"
	"time"
)

// MaxFailures is the number of failures that a daemon keeps.
const MaxFailures = 100

// Failure is an operation that has ended with an error.
type Failure struct {
	// Time is when, of the last one if there were several.
	Time time.Time `json:"time"`
	// Rank is the local rank, and Peer the other one; null if there is none in particular.
	Rank      int       `json:"rank"`
	Peer      *int      `json:"peer"`
	Operation Operation `json:"operation"`
	// State is what the operation was waiting in, as WAIT_CLEAR; empty if that is not known.
	State string `json:"state,omitempty"`
	// Reason is the error.
	Reason string `json:"reason"`
	// Count is how many failures in a row were the same.
	Count int `json:"count"`
	// Record is the path of a recording of the packets that led to it, while there is one.
	Record string `json:"record,omitempty"`
}

// What returns the operation, its peer and its state in words: "send to rank 2, WAIT_CLEAR".
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
