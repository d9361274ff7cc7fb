package mpe_test

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

var errEnough = errors.New("enough")

// detach detaches a request in transfer, which continues with its buffer or a copy. The result reports whether the
// engine has released that memory, which is then zeroed.
func detach(t *testing.T, op mpe.Op, buf []byte, copied bool) *atomic.Bool {
	t.Helper()
	released := new(atomic.Bool)
	_, err := op.(*mpe.Request).Detach(errEnough, func(part []byte) ([]byte, func()) {
		kept := part
		if copied {
			kept = bytes.Clone(part)
			clear(buf) // the buffer belongs to the caller when Detach returns
		}
		return kept, func() {
			if released.Swap(true) {
				t.Error("released twice")
			}
			clear(kept)
		}
	})
	var we *mpe.WaitError
	if !errors.As(err, &we) || !we.InTransfer || !errors.Is(err, errEnough) {
		t.Fatalf("got %v", err)
	}
	if released.Load() {
		t.Error("the buffer was released in the middle of the transfer")
	}
	return released
}

// TestDetach checks that the transfer of a detached request keeps its buffer until the transfer ends, or until the
// next receive has taken the message from it.
func TestDetach(t *testing.T) {
	const n = 100_000
	for name, tt := range map[string]struct {
		cluster func() *cluster
		after   time.Duration // the request is in transfer
	}{
		"cloudfpga": {func() *cluster { return newCluster(t, 2, handshake.SoftwarePeer(), nil) },
			2500 * time.Microsecond},
		"extended": {func() *cluster { return newExtended(t, 2, func(x *extended.Config) { x.Window = 4 }) },
			10 * time.Millisecond},
	} {
		for i := range 4 {
			send, copied := i%2 == 0, i/2 == 0
			synctest.Test(t, func(t *testing.T) {
				c := tt.cluster()
				defer c.close()
				c.net.SetHook(func(int, int, []byte) []time.Duration { return []time.Duration{time.Millisecond} })
				data := bytes.Repeat([]byte{1, 2, 3, 4}, n/4)
				out, in := bytes.Clone(data), make([]byte, n)
				r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: in})
				s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: out})
				time.Sleep(tt.after)
				if send {
					released := detach(t, s, out, copied)
					if _, err := r.Await(t.Context()); err != nil || !bytes.Equal(in, data) {
						t.Errorf("%s: %v, intact: %v", name, err, bytes.Equal(in, data))
					}
					time.Sleep(time.Second)
					if !released.Load() {
						t.Errorf("%s: the buffer of the send was not released", name)
					}
					return
				}
				released := detach(t, r, in, copied)
				if _, err := s.Await(t.Context()); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				time.Sleep(time.Second)
				if released.Load() {
					t.Errorf("%s: the buffer was released with the message in it", name)
				}
				next := make([]byte, n)
				st, err := start(t, c.engines[1],
					mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: next}).Await(t.Context())
				if err != nil || st.Bytes != n || !bytes.Equal(next, data) {
					t.Errorf("%s: the next receive got %+v, %v", name, st, err)
				}
				if !released.Load() {
					t.Errorf("%s: the buffer of the receive was not released", name)
				}
			})
		}
	}
	// A request that is not in transfer keeps nothing.
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.SoftwarePeer(), nil)
		defer c.close()
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 8)})
		_, err := r.(*mpe.Request).Detach(errEnough, func(buf []byte) ([]byte, func()) {
			t.Error("its buffer is kept")
			return buf, func() {}
		})
		if !errors.Is(err, errEnough) {
			t.Error(err)
		}
	})
}
