package mpe_test

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
)

func TestSetOfPlacements(t *testing.T) {
	var l mpe.Placements
	check := func(when string, want ...int) {
		t.Helper()
		if l.Len() != len(want) {
			t.Errorf("%s: %d placements, want %v", when, l.Len(), want)
		}
		for peer := -1; peer < 4; peer++ {
			at, has := l.ForPeer(peer), false
			for _, p := range want {
				has = has || p == peer
			}
			if (at != nil) != has || has && at.Peer != peer {
				t.Errorf("%s: peer %d has %+v", when, peer, at)
			}
		}
		if only := l.Single(); (only != nil) != (len(want) == 1) || only != nil && only.Peer != want[0] {
			t.Errorf("%s: the only one is %+v", when, only)
		}
	}
	buf := make([]byte, 10)
	check("at first")
	l.Set(mpe.Placement{Peer: 2, Buf: buf})
	check("one", 2)
	l.Set(mpe.Placement{Peer: 0, Buf: buf})
	check("two", 0, 2)
	l.Set(mpe.Placement{Peer: 2, Buf: buf[5:]})
	check("one moved", 0, 2)
	l.Set(mpe.Placement{Peer: 3})
	check("none of a third", 0, 2)
	l.Set(mpe.Placement{Peer: 2})
	check("one ended", 0)
	l.Set(mpe.Placement{Peer: 0})
	check("all ended")
}
