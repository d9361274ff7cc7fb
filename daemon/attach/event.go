package attach

// EventKind is what an Event is about.
type EventKind uint8

// The kinds of events.
const (
	// EventAttached: a program has a rank.
	EventAttached EventKind = iota
	// EventDetached: it no longer has it. Err says why.
	EventDetached
	// EventRefused: a program was not given a rank. Err is a *RefusedError.
	EventRefused
	// EventFailed: a connection could not be accepted, as Err says.
	EventFailed
	NumEventKinds
)

// Event is a change of state, or a failure, of a program that attaches. A program that may
// connect can cause any number of events.
type Event struct {
	Kind EventKind
	// Rank is the program's rank, or AnyRank if it has none.
	Rank int
	// PID and UID are the program's process and user, if Rank is not AnyRank.
	PID, UID int
	Err      error
}

// event is one of the session's program.
func (s *session) event(kind EventKind, err error) Event {
	return Event{Kind: kind, Rank: s.rank, PID: s.who.PID, UID: s.who.UID, Err: err}
}
