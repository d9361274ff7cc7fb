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
