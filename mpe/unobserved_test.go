package mpe_test

import (
	"testing"
	"testing/synctest"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// doneOf counts, for each other rank, the messages of which the Observer is notified.
type doneOf [3]int

func (*doneOf) Dropped(int, int, mpe.Drop)            {}
func (*doneOf) CallFailed(int, error)                 {}
func (*doneOf) Noted(int, int, mpe.Note)              {}
func (*doneOf) TransportError(int, error)             {}
func (o *doneOf) Done(_ int, s mpe.Status, err error) { o[s.Peer]++ }

// TestUnobserved checks that the Observer is notified of messages with observed peers only.
func TestUnobserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen doneOf
		c := newExtendedWith(t, 3, nil, func(cfg *mpe.Config) {
			if cfg.Rank == 0 {
				cfg.Observer, cfg.Peers[1].Unobserved = &seen, true
			}
		})
		defer c.close()
		for _, source := range []int{0, 1, 2} {
			for _, from := range []int{source, mpe.AnySource} {
				r := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpRecv, Peer: from, Buf: make([]byte, 8)})
				if _, err := c.engines[source].Send(t.Context(), 0, make([]byte, 8), mpe.Options{}); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			r := start(t, c.engines[source], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 8)})
			if _, err := c.engines[0].Send(t.Context(), source, make([]byte, 8), mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Await(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		// Both ends of a message from a rank to itself are observed.
		if want := (doneOf{6, 0, 3}); seen != want {
			t.Errorf("%v, want %v", seen, want)
		}
	})
}
