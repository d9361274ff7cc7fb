package attach

import (
	"cmp"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// Attached is a program that has a rank.
type Attached struct {
	Rank int
	wire.Credentials
	Since time.Time
	// Operations and Bytes are what it has under way, as Limits count them.
	Operations int
	Bytes      int64
}

// Attached lists the programs that have ranks, in rank order.
func (s *Server) Attached() []Attached {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []Attached
	for rank, ses := range s.attached {
		a := Attached{Rank: rank, Credentials: ses.who, Since: ses.since}
		a.Operations, a.Bytes = ses.underWay()
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b Attached) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

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

// Access says who has access beside root and the daemon's own user: users, and the members of
// groups, supplementary ones included.
type Access struct {
	UIDs, GIDs []int
}

// Allows reports whether a process with these credentials has access to a daemon that runs as user self.
func (a Access) Allows(c wire.Credentials, self int) bool {
	in := func(gid int) bool { return slices.Contains(a.GIDs, gid) }
	return c.UID == 0 || c.UID == self || slices.Contains(a.UIDs, c.UID) || in(c.GID) || slices.ContainsFunc(c.Groups, in)
}
