package mpemodel

import (
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const ms = time.Millisecond

func plusOne(words []uint32) []uint32 { return modeltest.AddToWords(1, words) }

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
	if err := r.Send(r.clock, dst, words, protocol.Int); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) recv(src int, count uint32) {
	r.t.Helper()
	if err := r.Recv(r.clock, src, count, protocol.Int); err != nil {
		r.t.Fatal(err)
	}
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

func (r *rig) wantState(want string) {
	r.t.Helper()
	if got := r.State(); got != want {
		r.t.Fatalf("state %s, want %s", got, want)
	}
}

// wantWedged checks that the reason contains want; "" means not wedged.
func (r *rig) wantWedged(want string) {
	r.t.Helper()
	if why, got := r.Wedged(); got != (want != "") || !strings.Contains(why, want) {
		r.t.Fatalf("wedged %v (%q), want %q; state %s", got, why, want, r.State())
	}
}

// wantBuffer checks that the last receive has returned, and its buffer.
func (r *rig) wantBuffer(want []uint32) {
	r.t.Helper()
	words, _, done := r.Result()
	if !done {
		r.t.Fatalf("the receive has not returned: %s", r.State())
	}
	if d := modeltest.Diff(words, want); d != "" {
		r.t.Fatal(d)
	}
}

// exchange runs a whole receive of words from rank src.
func (r *rig) exchange(src int, words []uint32) {
	r.t.Helper()
	r.recv(src, uint32(len(words)))
	r.in(src, modeltest.Header(protocol.SendRequest, src, 1, 0))
	r.in(src, modeltest.Message(src, 1, words)...)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, src, 0), modeltest.Header(protocol.Ack, 1, src, 0))
}

func sent(packets []Packet) []modeltest.SentPacket {
	var all []modeltest.SentPacket
	for _, p := range packets {
		all = append(all, modeltest.SentPacket(p))
	}
	return all
}
