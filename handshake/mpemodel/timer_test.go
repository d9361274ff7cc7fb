package mpemodel

import (
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// times removes the pending packets and returns their send times.
func (r *rig) times() []time.Duration {
	var at []time.Duration
	for _, p := range r.TakePackets() {
		at = append(at, p.At)
	}
	return at
}

// TestTimeouts has the table of the deployed timeouts: as seen on the wire for rank 1, and as in the source for other
// ranks.
func TestTimeouts(t *testing.T) {
	for _, c := range []struct {
		rank             int
		request, ack, cl []time.Duration
	}{
		{0,
			[]time.Duration{0, 100 * ms, 1200 * ms, 3300 * ms},
			[]time.Duration{0, 200 * ms, 1400 * ms, 3600 * ms},
			[]time.Duration{0, 100 * ms, 1200 * ms, 3300 * ms}},
		{1,
			[]time.Duration{0, 112500 * time.Microsecond, 1225 * ms, 3337500 * time.Microsecond},
			[]time.Duration{0, 225 * ms, 1450 * ms, 3675 * ms},
			[]time.Duration{0, 112500 * time.Microsecond, 1225 * ms, 3337500 * time.Microsecond}},
		{63,
			[]time.Duration{0, 887500 * time.Microsecond, 2775 * ms, 5662500 * time.Microsecond},
			[]time.Duration{0, 1775 * ms, 4550 * ms, 8325 * ms},
			[]time.Duration{0, 887500 * time.Microsecond, 2775 * ms, 5662500 * time.Microsecond}},
	} {
		peer := 5
		start := func() *rig {
			return &rig{Model: New(Config{Rank: c.rank, Peers: []int{peer}}), t: t}
		}
		check := func(what string, r *rig, want []time.Duration) {
			t.Helper()
			r.wantWedged("")
			// All timeouts in one step, and then nothing more.
			r.after(24 * time.Hour)
			if got := r.times(); !slices.Equal(got, want) {
				t.Errorf("rank %d: %s at %v, want %v", c.rank, what, got, want)
			}
			r.wantWedged("no timeout is left")
			if at, ok := r.NextEvent(); ok {
				t.Errorf("rank %d: %s: another timeout at %v", c.rank, what, at)
			}
		}
		r := start()
		r.send(peer, []uint32{1})
		check("SEND_REQUEST", r, c.request)
		// The model can still be freed.
		r.in(peer, modeltest.Header(protocol.ClearToSend, peer, c.rank, 0),
			modeltest.Header(protocol.Ack, peer, c.rank, 0))
		r.wantWedged("")
		if r.Busy() {
			t.Error("the send has not returned")
		}

		r = start()
		r.send(peer, []uint32{1})
		r.TakePackets()
		r.in(peer, modeltest.Header(protocol.ClearToSend, peer, c.rank, 0))
		check("DATA", r, c.ack)

		r = start()
		r.recv(peer, 1)
		r.in(peer, modeltest.Header(protocol.SendRequest, peer, c.rank, 0))
		check("CLEAR_TO_SEND", r, c.cl)
	}
}

func TestRetransmissionsAreSharedByThePhases(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.after(1300 * ms)
	if got := len(r.times()); got != 3 {
		t.Fatalf("%d SEND_REQUESTs, want 3", got)
	}
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0))
	r.after(time.Hour)
	// 2 × 112.5 ms, and 1 s for each of two retransmissions; that was the third one.
	if got, want := r.times(), []time.Duration{1300 * ms, 3525 * ms}; !slices.Equal(got, want) {
		t.Errorf("DATA at %v, want %v", got, want)
	}
}

func TestRetransmissionsAreCountedPerCall(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.after(time.Hour)
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0), modeltest.Header(protocol.Ack, 0, 1, 0))
	r.TakePackets()
	r.send(0, []uint32{1})
	if at, ok := r.NextEvent(); !ok || at != r.clock+112500*time.Microsecond {
		t.Errorf("next timeout at %v, %v; started at %v", at, ok, r.clock)
	}
}

// A packet that arrives in a wait and is not the expected one does not restart the counter, and takes no time.
func TestOtherPacketsDoNotResetTheTimeout(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.TakePackets()
	for range 11 {
		r.after(10 * ms)
		r.in(2, modeltest.Header(protocol.SendRequest, 2, 1, 0))
	}
	r.wantOut()
	r.after(2500 * time.Microsecond)
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
}

func TestTimeGoingBackwardsIsIgnored(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{1})
	r.after(100 * ms)
	r.Tick(-time.Hour)
	if at, ok := r.NextEvent(); !ok || at != 112500*time.Microsecond {
		t.Errorf("next timeout at %v, %v", at, ok)
	}
}

// A message that times out in the middle leaves an empty line in the program's buffer and no mark of its end. Its
// retransmission is acknowledged, but a part of it went into the first attempt, and the program waits forever.
func TestTimeoutInMidMessage(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1000)
	d := modeltest.Message(0, 1, words)
	r := begin(t, 1000)
	r.after(50 * ms)
	r.in(0, d[0])
	r.after(50 * ms)
	r.in(0, d[1])
	at, ok := r.NextEvent()
	if !ok || at != r.clock+112500*time.Microsecond {
		t.Fatalf("next timeout at %v, %v", at, ok)
	}
	r.after(200 * ms)
	// Nothing asks the peer to retransmit.
	r.wantOut()
	r.wantState("RECV_DATA_START")
	r.wantWedged("abandoned after 351 of 500 lines")
	r.in(0, d...)
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantState("IDLE")
	r.wantWedged("waits for more lines")
	// There were 350 lines and the empty one, so 149 lines of the retransmission ended the first attempt. The 150th was
	// the second half of a 16-byte word, and lost with it; the other 350 are the start of the second attempt.
	buf, overrun, done := r.Result()
	if d := modeltest.Diff(buf, slices.Concat(words[300:], []uint32{0, 0}, words[:298])); d != "" || overrun || done {
		t.Errorf("%s; overrun %v, done %v", d, overrun, done)
	}
}

// Only if a single line is missing does the empty line end the first attempt, and the retransmission is received
// completely.
func TestTimeoutWithOneLineMissing(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 347)
	d := modeltest.Message(0, 1, words)
	r := begin(t, 347)
	r.in(0, d[0])
	r.after(200 * ms)
	r.in(0, d...)
	r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
	r.exchange(0, modeltest.PatternWords(1, 0, 3))
	r.wantBuffer(modeltest.PatternWords(1, 0, 3))
}

// Each such timeout leaves a word that reports a completed message. If the FIFO for such words is full, the dequeuer
// stops, and a message larger than the data FIFO blocks forever.
func TestFiveTimeoutsWithOneLineMissing(t *testing.T) {
	r := newRig(t)
	for i := range 5 {
		words := modeltest.PatternWords(i, 0, 347)
		if i == 4 {
			words = modeltest.PatternWords(i, 0, 1056)
		}
		d := modeltest.Message(0, 1, words)
		r.recv(0, uint32(len(words)))
		r.in(0, modeltest.Header(protocol.SendRequest, 0, 1, 0))
		r.in(0, d[:len(d)-1]...)
		r.after(200 * ms)
		r.TakePackets()
		r.in(0, d...)
		if i < 4 {
			r.wantOut(modeltest.Header(protocol.Ack, 1, 0, 0))
			r.wantBuffer(words)
		}
	}
	r.wantOut()
	r.wantState("RECV_DATA_RD")
	r.wantWedged("data FIFO is full")
}

// The rest of an aborted message is no longer payload.
func TestLateContinuationAfterTheTimeoutIsDrained(t *testing.T) {
	d := modeltest.Message(0, 1, modeltest.PatternWords(0, 0, 1000))
	r := begin(t, 1000)
	r.in(0, d[0], d[1])
	r.after(200 * ms)
	r.in(0, d[2])
	r.wantOut()
	r.wantState("RECV_DATA_START")
	r.wantWedged("abandoned after 351 of 500 lines")
}
