package node

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// answerTime is how long a rank of a job has not to answer before this is said.
const answerTime = 5 * time.Second

// unanswered names ranks of a job that do not answer, each once.
type unanswered struct {
	rank  *Rank
	to    io.Writer
	after time.Duration
	said  map[int]bool
}

// watch does so until ctx ends.
func (u *unanswered) watch(ctx context.Context) {
	tick := time.NewTicker(u.after / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.look()
		case <-ctx.Done():
			return
		}
	}
}

// look names those that have not answered by now.
func (u *unanswered) look() {
	waits := map[int]time.Duration{}
	u.rank.Engine.Counters(func(*mpe.RankCounters) {}, func(c *mpe.PeerCounters) {
		if since, silent := silentFor(c); silent && since >= u.after && !u.said[c.Rank] {
			waits[c.Rank] = since
		}
	})
	for i := range u.rank.Config.Ranks {
		peer := &u.rank.Config.Ranks[i]
		if since, silent := waits[peer.Rank]; silent {
			u.said[peer.Rank] = true
			fmt.Fprintf(u.to, "zrlmpi: rank %d (%s at %v) has not answered: rank %d has waited %v to send to it\n",
				peer.Rank, peer.Peer, peer.Address, u.rank.Self.Rank, since.Round(time.Second))
		}
	}
}

// silentFor reports whether nothing has ever come from a peer to which a message waits, and for how long it has waited.
func silentFor(c *mpe.PeerCounters) (since time.Duration, silent bool) {
	if c.Drops != (mpe.DropCounts{}) {
		return 0, false
	}
	for _, n := range c.PacketsIn {
		if n > 0 {
			return 0, false
		}
	}
	return c.OldestSend.Elapsed, c.OldestSend.Waits
}
