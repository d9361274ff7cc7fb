package attach

import (
	"cmp"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// AttachedProgram describes a program attached to a rank.
type AttachedProgram struct {
	Rank int
	wire.Credentials
	AttachedAt time.Time
	// Operations is the number of operations in progress, and Bytes is the size of their payload. Both are counted as
	// for Limits.
	Operations int
	Bytes      int64
}

// AttachedPrograms lists the attached programs in rank order.
func (s *Server) AttachedPrograms() []AttachedProgram {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []AttachedProgram
	for rank, ses := range s.sessions {
		a := AttachedProgram{Rank: rank, Credentials: ses.credentials, AttachedAt: ses.attachedAt}
		a.Operations, a.Bytes = ses.pendingTotals()
		list = append(list, a)
	}
	slices.SortFunc(list, func(a, b AttachedProgram) int { return cmp.Compare(a.Rank, b.Rank) })
	return list
}

// EventKind is the kind of an Event.
type EventKind uint8

const (
	// EventAttached means that a program attached to a rank.
	EventAttached EventKind = iota
	// EventDetached means that a program released its rank. Err is the reason.
	EventDetached
	// EventRefused means that the server refused to assign a rank to a program. Err is a *RefusedError.
	EventRefused
	// EventFailed means that the server could not accept a connection. Err is the reason.
	EventFailed
	NumEventKinds
)

// Event reports that a program was attached, detached or refused, or that a connection failed. Any program that may
// connect can cause an unlimited number of events.
type Event struct {
	Kind EventKind
	// Rank is the program's rank, or AnyRank if no rank is assigned.
	Rank int
	// PID and UID identify the program's process and user. They are valid unless Rank is AnyRank.
	PID, UID int
	Err      error
}

// newEvent returns an Event about the session's program.
func (s *session) newEvent(kind EventKind, err error) Event {
	return Event{Kind: kind, Rank: s.rank, PID: s.credentials.PID, UID: s.credentials.UID, Err: err}
}

// Access lists the users and groups with access, in addition to root and the daemon's own user. Supplementary groups
// count.
type Access struct {
	UIDs, GIDs []int
}

// Allows reports whether a process with credentials c may access a daemon running as user self.
func (a Access) Allows(c wire.Credentials, self int) bool {
	in := func(gid int) bool { return slices.Contains(a.GIDs, gid) }
	return c.UID == 0 || c.UID == self || slices.Contains(a.UIDs, c.UID) || in(c.GID) ||
		slices.ContainsFunc(c.Groups, in)
}
