package core

import (
	"errors"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// TestPeersAreCreatedByTheirFirstUse checks that a core of a large cluster creates only the peers that it exchanges
// messages with, that Snapshot lists only those, and that operations with all others are checked nevertheless.
func TestPeersAreCreatedByTheirFirstUse(t *testing.T) {
	handshakePeer := func(int, int) Peer { return Peer{Handshake: handshake.Config{MaxWords: 1000}} }
	w := newCores(t, 1, maxListedUnused+1, faults{}, handshakePeer)
	e := w.cores[0]
	created := func() (ranks []int) {
		for p := range e.peers.created {
			ranks = append(ranks, p.rank)
		}
		return ranks
	}
	if err := e.Check(&Operation{Kind: OpSend, Peer: 7, Buf: make([]byte, 3)}); !errors.Is(err, ErrLength) {
		t.Errorf("3 bytes: %v", err)
	}
	if err := e.Check(&Operation{Kind: OpSend, Peer: 7, Buf: make([]byte, 4)}); err != nil {
		t.Error(err)
	}
	if s := e.Snapshot(); len(created()) > 0 || len(s.Peers) > 0 {
		t.Errorf("peers %v are created, %d are listed", created(), len(s.Peers))
	}
	w.event(0, func(e *Core) {
		if !e.peers.at(5).noTags() || e.peers.at(0) != nil {
			t.Error("rank 5 is not a peer, or rank 0 is its own peer")
		}
	})
	if s := e.Snapshot(); len(created()) != 1 || len(s.Peers) != 1 || s.Peers[0].Rank != 5 {
		t.Errorf("peers %v are created, %v are listed", created(), s.Peers)
	}
	// A receive from any source may be answered by a peer that has not been in use.
	if err := e.CheckSender(AnySource, 0); err != nil {
		t.Error(err)
	}
	small := newCores(t, 1, maxListedUnused, faults{}, handshakePeer).cores[0]
	if n := len(small.Snapshot().Peers); n != maxListedUnused-1 {
		t.Errorf("%d peers of a small cluster are listed", n)
	}
}
