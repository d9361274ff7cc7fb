package node

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// silenceTimeout is the time after which the watcher reports a rank of the job that has not answered.
const silenceTimeout = 5 * time.Second

// silenceWatcher reports each rank of a job that does not answer, once. It also fails waits for a rank that has called
// MPI_Finalize.
type silenceWatcher struct {
	rank      *Rank
	output    io.Writer
	threshold time.Duration
	reported  map[int]bool
	// finalized reports whether a rank of the job has called MPI_Finalize, as far as the launcher knows. It is nil if
	// the launcher cannot know.
	finalized func(rank int) bool
}

// watch checks the ranks periodically until ctx is done.
func (u *silenceWatcher) watch(ctx context.Context) {
	tick := time.NewTicker(u.threshold / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			u.check()
		case <-ctx.Done():
			return
		}
	}
}

// check reports ranks that have not answered for too long.
func (u *silenceWatcher) check() {
	waits, receives, ask := map[int]time.Duration{}, map[int]time.Duration{}, map[int]bool{}
	u.rank.Engine.Counters(func(*state.RankCounters) {}, func(counters *state.PeerCounters) {
		since, silent := unansweredWait(counters)
		switch {
		case u.reported[counters.Rank]:
		case silent && since >= u.threshold:
			waits[counters.Rank] = since
		case neverReceived(counters) && counters.OldestRecv.Waits && counters.OldestRecv.Elapsed >= 2*u.threshold:
			receives[counters.Rank] = counters.OldestRecv.Elapsed
		}
		ask[counters.Rank] = silent && since >= u.threshold || counters.OldestRecv.Waits &&
			counters.OldestRecv.Elapsed >= u.threshold
	})
	for rank, asked := range ask {
		if asked && u.finalized != nil && u.finalized(rank) {
			u.rank.Engine.PeerFinalized(rank)
			delete(waits, rank)
		}
	}
	for i := range u.rank.Config.Ranks {
		peer := &u.rank.Config.Ranks[i]
		if since, silent := waits[peer.Rank]; silent {
			u.reported[peer.Rank] = true
			fmt.Fprintf(u.output, "zrlmpi: rank %d (%s at %v) has not answered: rank %d has waited %v to send to it\n",
				peer.Rank, peer.Peer, peer.Address, u.rank.Self.Rank, since.Round(time.Second))
		}
		if since, silent := receives[peer.Rank]; silent &&
			(peer.Peer == config.PeerFPGA || peer.Peer == config.PeerCPU) {
			u.reported[peer.Rank] = true
			fmt.Fprintf(u.output, "zrlmpi: no packet received from rank %d (%s at %v): rank %d has waited %v to "+
				"receive from "+
				"it. If it asked to send before this process started, it does not ask again: restart its role or "+
				"program\n",
				peer.Rank, peer.Peer, peer.Address, u.rank.Self.Rank, since.Round(time.Second))
		}
	}
}

// unansweredWait reports whether a message is waiting for a peer from which no packet was ever received, and the
// duration of the wait.
func unansweredWait(c *state.PeerCounters) (since time.Duration, silent bool) {
	if !neverReceived(c) {
		return 0, false
	}
	return c.OldestSend.Elapsed, c.OldestSend.Waits
}

// neverReceived reports whether no packet at all has arrived from a peer, not even one that was dropped.
func neverReceived(c *state.PeerCounters) bool {
	return c.Drops == (state.DropCounts{}) && c.PacketsIn == [state.NumTypes]uint64{}
}
