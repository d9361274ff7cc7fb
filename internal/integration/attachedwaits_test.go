package integration_test

import (
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// TestAttachedCycle checks that the diagnosis of a cycle of receives is certain only if the programs sleep in the
// receives and attach with rings. A program that has posted a receive may be computing, and over a socket it does not
// report which operations it awaits.
func TestAttachedCycle(t *testing.T) {
	for _, tt := range []struct {
		name                string
		sockets, computes   bool
		zeroAwaits, certain bool
	}{
		{"both sleep", false, false, true, true},
		{"one computes", false, true, true, false},
		{"over sockets", true, false, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			socket, daemon := attachedWorld(t)
			dial := attach.Dial
			if tt.sockets {
				dial = attach.DialSocket
			}
			for rank := range 2 {
				c, err := dial(t.Context(), socket, rank)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close(ended()) })
				op, err := c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 1 - rank, Buf: make([]byte, 4)})
				if err != nil {
					t.Fatal(err)
				}
				if rank == 0 || !tt.computes {
					done := make(chan error)
					go func() {
						_, err := op.Await(t.Context())
						done <- err
					}()
					t.Cleanup(func() {
						if err := <-done; !errors.Is(err, mpe.ErrClosed) && !errors.Is(err, t.Context().Err()) {
							t.Error(err)
						}
					})
				}
			}
			const after = 100 * time.Millisecond
			var d *diagnosis.Diagnosis
			var awaited [2]bool
			want := [2]bool{tt.zeroAwaits, tt.zeroAwaits && !tt.computes}
			hangs := func() bool {
				s, err := daemon.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				awaited = awaitedOfPair(&s)
				d = diagnosis.Diagnose([]diagnosis.Source{{Name: "daemon", Status: &s}}, after)
				return len(d.Findings) == 1 && len(d.Waiting) == 2 && awaited == want
			}
			for deadline := time.Now().Add(20 * time.Second); !hangs() && time.Now().Before(deadline); {
				time.Sleep(after / 5)
			}
			if len(d.Findings) != 1 || d.Findings[0].Cause != diagnosis.WaitCycle || d.Findings[0].Certain != tt.certain ||
				awaited != want {
				t.Errorf("awaited %v, want %v\n%s", awaited, want, d.Text())
			}
		})
	}
}

// awaitedOfPair reports whether ranks 0 and 1 of a daemon await their receives from each other.
func awaitedOfPair(s *state.Status) (awaited [2]bool) {
	for i := range s.Ranks {
		for _, p := range s.Ranks[i].Engine.Peers {
			if rank := s.Ranks[i].Rank; rank+p.Rank == 1 && p.Receiving != nil {
				awaited[rank] = p.Receiving.Awaited
			}
		}
	}
	return awaited
}

// TestStateOfDetaching checks that the state of a rank can be read while its programs detach. Detaching unmaps the
// memory in which the programs list the operations that they await.
func TestStateOfDetaching(t *testing.T) {
	socket, daemon := attachedWorld(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 200 {
			c, err := attach.Dial(t.Context(), socket, 0)
			if err != nil {
				t.Error(err)
				return
			}
			for range 3 {
				op, err := c.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: make([]byte, 4)})
				if err != nil {
					t.Error(err)
					return
				}
				go func() { _, _ = op.Await(t.Context()) }()
			}
			time.Sleep(time.Millisecond)
			if err := c.Close(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}()
	seen := 0
	for {
		s, err := daemon.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range s.Ranks[0].Engine.Peers {
			if p.Rank == 1 && p.Receiving != nil && p.Receiving.Awaited {
				seen++
			}
		}
		select {
		case <-done:
			if seen == 0 {
				t.Error("no state has an operation that is awaited")
			}
			return
		default:
		}
	}
}
