package pcapng

import (
	"fmt"
	"time"
)

// RankNote is a note about a rank: *QueueDepths or *Call. The file stores it as a comment in an interface statistics
// block.
type RankNote interface {
	// RankAndTime returns the rank and the time of the note.
	RankAndTime() (rank int, at time.Time)
	// comment returns the text of the comment.
	comment() string
}

// QueueDepths holds the lengths of a rank's queues: receives that no message has matched, messages that no receive has
// matched, and pending sends.
type QueueDepths struct {
	Time                            time.Time
	Rank, Posted, Unexpected, Sends int
}

// depthsFormat is part of the file format: parseRankNote reads comments with it.
const depthsFormat = "rank %d: posted %d, unexpected %d, sends %d"

// RankAndTime implements RankNote.
func (d *QueueDepths) RankAndTime() (rank int, at time.Time) { return d.Rank, d.Time }

func (d *QueueDepths) comment() string {
	return fmt.Sprintf(depthsFormat, d.Rank, d.Posted, d.Unexpected, d.Sends)
}

// Call is an operation posted or completed by a rank's program: a send, a receive, or a collective call.
type Call struct {
	Time time.Time
	Rank int
	// ID identifies a call among the pending calls of its rank. The ID of a call that completed immediately is not
	// unique.
	ID int64
	// Name is Send, Receive, or the name of the collective operation.
	Name  string
	State CallState
	// Duration is the time from the posting of the call until the recorded state was reached.
	Duration time.Duration
	// Peer is -1 in a receive from any source and in a collective call. Tag is the number of a collective call, or -1
	// in a receive that matches any tag. Bytes is -1 if it may differ between ranks.
	Peer, Tag int
	Comm      uint32
	Bytes     int64
}

// CallState is the state of a call.
type CallState string

// States of a call.
const (
	CallPosted    CallState = "posted"
	CallCompleted CallState = "ended"
	CallFailed    CallState = "failed"
)

// Names of point-to-point calls.
const (
	SendCall    = "Send"
	ReceiveCall = "Receive"
)

// callFormat is part of the file format, as depthsFormat is.
const callFormat = "rank %d: call %d, %s %s after %d ns: peer %d, tag %d, communicator %d, bytes %d"

// RankAndTime implements RankNote.
func (c *Call) RankAndTime() (rank int, at time.Time) { return c.Rank, c.Time }

func (c *Call) comment() string {
	return fmt.Sprintf(callFormat, c.Rank, c.ID, c.Name, c.State, c.Duration.Nanoseconds(), c.Peer, c.Tag, c.Comm, c.Bytes)
}

// String describes the call, for example "Allreduce, 4096 bytes, communicator 0".
func (c *Call) String() string {
	text := c.Name
	switch {
	case c.Name == SendCall:
		text += fmt.Sprintf(" to rank %d", c.Peer)
	case c.Name == ReceiveCall && c.Peer < 0:
		text += " from any source"
	case c.Name == ReceiveCall:
		text += fmt.Sprintf(" from rank %d", c.Peer)
	}
	if c.Bytes >= 0 {
		text += fmt.Sprintf(", %d bytes", c.Bytes)
	}
	return text + fmt.Sprintf(", communicator %d", c.Comm)
}

// AddNote adds a note about a rank.
func (w *Writer) AddNote(n RankNote) {
	_, at := n.RankAndTime()
	w.ng.beginBlock(blockStatistics)
	w.ng.appendUint32(0)
	w.ng.appendTime(at)
	w.ng.appendOption(optComment, n.comment())
	w.ng.endBlock()
}

// parseRankNote parses a comment. It returns nil if the comment is not a RankNote.
func parseRankNote(comment string, at time.Time) RankNote {
	d := QueueDepths{Time: at}
	if _, err := fmt.Sscanf(comment, depthsFormat, &d.Rank, &d.Posted, &d.Unexpected, &d.Sends); err == nil {
		if min(d.Rank, d.Posted, d.Unexpected, d.Sends) < 0 {
			return nil
		}
		return &d
	}
	call := Call{Time: at}
	_, err := fmt.Sscanf(comment, callFormat,
		&call.Rank, &call.ID, &call.Name, &call.State, (*int64)(&call.Duration), &call.Peer, &call.Tag, &call.Comm,
		&call.Bytes)
	if err != nil || call.Rank < 0 || call.Duration < 0 || call.State != CallPosted && call.State != CallCompleted &&
		call.State != CallFailed {
		return nil
	}
	return &call
}
