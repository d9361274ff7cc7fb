package cpumodel

import (
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const ms = time.Millisecond

// rig is a model under test, rank 1, with peers 0 and 2.
type rig struct {
	*Model
	t *testing.T
	// clock is the time of the next event.
	clock time.Duration
}

func newRig(t *testing.T) *rig {
	return &rig{Model: New(Config{Rank: 1, Peers: []int{0, 2}}), t: t}
}

func (r *rig) send(dst int, words []uint32) {
	r.t.Helper()
	if err := r.Send(r.clock, dst, words); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) recv(src, count int) {
	r.t.Helper()
	if err := r.Recv(r.clock, src, count); err != nil {
		r.t.Fatal(err)
	}
}

// cleared makes the process wait for DATA of rank 0.
func (r *rig) cleared(count int) {
	r.t.Helper()
	r.recv(0, count)
	r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

func (r *rig) in(from int, datagrams ...[]byte) {
	for _, d := range datagrams {
		r.Datagram(r.clock, from, d)
	}
}

func (r *rig) after(d time.Duration) {
	r.clock += d
	r.Tick(r.clock)
}

// wantOut checks the packets transmitted since the last call.
func (r *rig) wantOut(want ...[]byte) {
	r.t.Helper()
	modeltest.WantPackets(r.t, sent(r.TakePackets()), want)
}

// wantAck checks that the receive has returned these words and sent an ACK.
func (r *rig) wantAck(words []uint32) {
	r.t.Helper()
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
}

func (r *rig) wantState(want string) {
	r.t.Helper()
	if got := r.State(); got != want {
		r.t.Fatalf("state %q, want %q", got, want)
	}
}

// wantCrash checks that the reason of the crash contains want.
func (r *rig) wantCrash(want string) {
	r.t.Helper()
	if why, crashed := r.Crashed(); !crashed || !strings.Contains(why, want) {
		r.t.Fatalf("crashed %v (%q), want %q; state %q", crashed, why, want, r.State())
	}
}

// wantStuck checks that the reason contains want; "" means not stuck.
func (r *rig) wantStuck(want string) {
	r.t.Helper()
	if why, got := r.Stuck(); got != (want != "") || !strings.Contains(why, want) {
		r.t.Fatalf("stuck %v (%q), want %q; state %q", got, why, want, r.State())
	}
}

// wantBuffer checks that the last receive has returned, and its buffer.
func (r *rig) wantBuffer(want []uint32) {
	r.t.Helper()
	words, done := r.Result()
	if !done {
		r.t.Fatalf("the receive has not returned: %s", r.State())
	}
	if d := modeltest.Diff(words, want); d != "" {
		r.t.Fatal(d)
	}
}

func sent(packets []Packet) []modeltest.SentPacket {
	var all []modeltest.SentPacket
	for _, p := range packets {
		all = append(all, modeltest.SentPacket(p))
	}
	return all
}
