package cpumodel

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var (
	request = modeltest.Header(protocol.SendRequest, 0, 1, 0)
	clear0  = modeltest.Header(protocol.ClearToSend, 0, 1, 0)
	ack0    = modeltest.Header(protocol.Ack, 0, 1, 0)
)

func TestReceive(t *testing.T) {
	for _, n := range []int{0, 1, 2, 346, 347, 353, 700, 701, 1001, 70000} {
		r := newRig(t)
		words := modeltest.PatternWords(3, 0, n)
		r.cleared(n)
		r.in(0, modeltest.Message(0, 1, words)...)
		r.wantAck(words)
		r.wantState("idle")
	}
}

func TestSend(t *testing.T) {
	for _, n := range []int{0, 1, 346, 347, 353, 700, 701, 65536} {
		r := newRig(t)
		words := modeltest.PatternWords(3, 1, n)
		r.send(0, words)
		r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
		r.in(0, clear0)
		r.wantOut(modeltest.Message(1, 0, words)...)
		if r.in(0, ack0); r.Busy() {
			t.Fatalf("%d words: %s", n, r.State())
		}
		if words, done := r.Result(); !done || words != nil {
			t.Fatalf("%d words: result %v, %v", n, words, done)
		}
	}
}

// In a message of more than 65536 words, a pause follows each datagram, and nothing is read before the last pause.
func TestLongMessagePauses(t *testing.T) {
	r := newRig(t)
	words := modeltest.PatternWords(0, 1, 65537)
	r.send(0, words)
	r.in(0, clear0, ack0)
	r.TakePackets()
	want := modeltest.Message(1, 0, words)
	r.after(time.Duration(len(want)-1) * pause)
	r.wantOut(want[1:]...)
	r.wantState("send DATA")
	r.after(pause)
	r.wantState("idle")
}

func TestErrors(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		err, want error
	}{
		{r.Send(0, 1, nil), ErrRank},
		{r.Recv(0, 3, 1), ErrRank},
		{r.Recv(0, 0, -1), ErrCount},
		{r.Recv(0, 0, maxCount+1), ErrCount},
		{r.Recv(0, 0, 1), nil},
		{r.Send(0, 0, nil), ErrBusy},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("got %v, want %v", c.err, c.want)
		}
	}
}

// A message of one datagram delivers its payload regardless of the size in the header: at most the posted words, and
// the rest of the buffer is unchanged.
func TestOneDatagramOfAnyLength(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 340)
	for _, c := range []struct{ posted, sent, want int }{{5, 5, 5}, {5, 7, 5}, {5, 3, 3}, {5, 300, 5}, {300, 5, 5}} {
		r := newRig(t)
		r.cleared(c.posted)
		r.in(0, modeltest.Message(0, 1, words[:c.sent])...)
		r.wantAck(append(slices.Clone(words[:c.want]), make([]uint32, c.posted-c.want)...))
	}
	// Bytes count, not words.
	r := newRig(t)
	r.cleared(2)
	r.in(0, append(modeltest.Header(protocol.Data, 0, 1, 2), 1, 2, 3, 4, 5))
	r.wantAck([]uint32{0x04030201, 5})
}

// A message of several datagrams is complete when as many bytes as posted have been received. The size in the header
// does not matter.
func TestShorterThanPosted(t *testing.T) {
	r := newRig(t)
	words := modeltest.PatternWords(0, 0, 1000)
	r.cleared(1000)
	r.in(0, modeltest.Message(0, 1, words[:500])...)
	r.wantState("wait for DATA")
	r.after(99 * ms)
	r.wantOut()
	r.after(ms)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

// TestLostContinuation: the message starts over after 100 ms without a datagram, and not before: an earlier
// retransmission is stored after the bytes received.
func TestLostContinuation(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	r := newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.after(100 * ms)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.in(0, d...)
	r.wantAck(words)

	r = newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.after(99 * ms)
	r.in(0, d...)
	r.wantAck(slices.Concat(words[:346], words[700:], words[346:700]))
	// The next wait drops the rest, and the header was deferred.
	if h, ok := r.deferred.get(0); !ok || h.typ != protocol.Data {
		t.Fatalf("deferred %v, %v", h, ok)
	}
	r.cleared(1)
	r.in(0, modeltest.Message(0, 1, []uint32{7})...)
	r.wantAck([]uint32{7})
}

// TestLateContinuation: a continuation datagram that arrives after the message has started over is dropped before DATA,
// and stored after it.
func TestLateContinuation(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	r := newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.after(100 * ms)
	r.in(0, d[1], d[0], d[1], d[2])
	r.TakePackets()
	r.wantBuffer(words)

	r = newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.after(100 * ms)
	r.in(0, d[0], d[2], d[1], d[2])
	r.TakePackets()
	r.wantBuffer(slices.Concat(words[:346], words[700:], words[346:700]))
}

// A datagram without a header counts as continuation, whatever its source.
func TestContinuationFromAnyAddress(t *testing.T) {
	for _, from := range []int{0, 2, -1} {
		r := newRig(t)
		words := modeltest.PatternWords(0, 0, 347)
		d := modeltest.Message(0, 1, words)
		r.cleared(347)
		r.in(0, d[0])
		r.in(from, d[1])
		r.wantAck(words)
	}
}

// A header in mid-message is deferred, whatever its contents, and overwritten by the next datagram.
func TestHeaderInMidMessage(t *testing.T) {
	for _, h := range [][]byte{request, modeltest.Header(protocol.SendRequest, 2, 1, 0),
		modeltest.Message(0, 1, modeltest.PatternWords(9, 9, 300))[0]} {
		r := newRig(t)
		words := modeltest.PatternWords(0, 0, 1001)
		d := modeltest.Message(0, 1, words)
		r.cleared(1001)
		r.in(0, d[0], h, d[1], h, d[2])
		r.wantAck(words)
	}
}

// The receive buffer is 64 bytes longer than the payload.
func TestOverrun(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	for name, in := range map[string][][]byte{
		"DATA twice, duplicated late":      {d[0], d[1], d[0]},
		"continuation of a retransmission": {d[0], d[2], d[0], d[1][:1000], d[1]},
		"a longer message":                 modeltest.Message(0, 1, modeltest.PatternWords(0, 0, 1018)),
	} {
		r := newRig(t)
		r.cleared(1001)
		r.in(0, in...)
		r.wantCrash("of a receive buffer of 4068 bytes")
		r.wantStuck("bytes are written at")
		r.wantState("crashed")
		if r.in(0, request); len(r.TakePackets()) != 0 {
			t.Errorf("%s: it sends after the crash", name)
		}
		if err := r.Recv(r.clock, 0, 1); !errors.Is(err, ErrCrashed) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Up to 16 words more fit.
	r := newRig(t)
	r.cleared(1001)
	r.in(0, modeltest.Message(0, 1, modeltest.PatternWords(0, 0, 1009))...)
	r.wantAck(modeltest.PatternWords(0, 0, 1001))
}

func TestSourceRankOutOfRangeOverruns(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	r.in(0, modeltest.Header(protocol.SendRequest, 127, 1, 0))
	r.wantState("wait for SEND_REQUEST")
	r.in(0, modeltest.Header(protocol.SendRequest, 128, 1, 0))
	r.wantCrash("source rank 128")
}

// One header is deferred per source rank named in headers. A newer one overwrites it, and a wait finds only the header
// that it waits for.
func TestDeferredHeaders(t *testing.T) {
	r := newRig(t)
	request2 := modeltest.Header(protocol.SendRequest, 2, 1, 0)
	r.cleared(1)
	r.in(2, request2, request2)
	r.in(0, modeltest.Message(0, 1, []uint32{1})...)
	r.wantAck([]uint32{1})
	if r.deferred.num != 2 {
		t.Fatalf("%d deferred headers are counted, want 2", r.deferred.num)
	}
	r.recv(2, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
	r.in(2, modeltest.Message(2, 1, []uint32{5})...)
	r.wantOut(modeltest.Header(protocol.Ack, 1, 2, 0))
	if _, ok := r.deferred.get(2); ok || r.deferred.num != 1 {
		t.Fatalf("header found %v, %d counted", ok, r.deferred.num)
	}

	// A CLEAR_TO_SEND overwrites the SEND_REQUEST, which is lost.
	r.cleared(1)
	r.in(2, request2, modeltest.Header(protocol.ClearToSend, 2, 1, 0))
	r.in(0, modeltest.Message(0, 1, []uint32{1})...)
	r.wantAck([]uint32{1})
	r.recv(2, 1)
	r.wantOut()
	r.wantState("wait for SEND_REQUEST")
	// It remains until the next header, since the wait is for another one.
	if h, _ := r.deferred.get(2); h.typ != protocol.ClearToSend {
		t.Fatalf("deferred %v", h)
	}
	r.in(2, request2, modeltest.Message(2, 1, []uint32{6})[0])
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0), modeltest.Header(protocol.Ack, 1, 2, 0))
	// A send that did not ask for it finds it.
	r.send(2, []uint32{8})
	r.wantOut(append([][]byte{modeltest.Header(protocol.SendRequest, 1, 2, 0)},
		modeltest.Message(1, 2, []uint32{8})...)...)
}

// A retransmitted SEND_REQUEST is deferred, and causes a CLEAR_TO_SEND at the next receive, before the next message is
// announced (capture ref_ref_late_recv_stale_sr).
func TestStaleSendRequest(t *testing.T) {
	r := newRig(t)
	r.in(0, request, request)
	r.recv(0, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.in(0, modeltest.Message(0, 1, []uint32{1})...)
	r.wantAck([]uint32{1})
	r.recv(0, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

// The address is compared with the address of the expected rank before a header is used, but not for a deferred header.
func TestAddress(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	r.in(2, request)
	r.in(-1, modeltest.Header(protocol.SendRequest, 2, 1, 0))
	r.wantOut()
	r.in(0, request)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.in(0, modeltest.Message(0, 1, []uint32{1})...)
	r.wantAck([]uint32{1})
	r.recv(2, 1)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 2, 0))
}

// The conditions for a header to be used: its marks, zeros in bytes 18 to 27, both ranks, type and call. Invalid
// headers are dropped, others deferred.
func TestHeaderCheck(t *testing.T) {
	for i := range protocol.HeaderLen {
		r := newRig(t)
		r.recv(0, 1)
		b := bytes.Clone(request)
		b[i] ^= 1
		r.in(0, b)
		used := len(r.TakePackets()) > 0
		stored := r.deferred.num > 0
		_, crashed := r.Crashed()
		size := i >= 12 && i < 16
		ignored := i < 4 || i >= 18
		far := i >= 9 && i < 12 // a source rank of 256 or more
		if used != size || stored != (!size && !ignored && !far) || crashed != far {
			t.Errorf("byte %d: used %v, stored %v, crashed %v", i, used, stored, crashed)
		}
	}
}

// Without payload a wait reads 32 bytes: a longer datagram is truncated, and its header counts; for a shorter one the
// rest is the previous content of the buffer.
func TestWaitReads32Bytes(t *testing.T) {
	r := newRig(t)
	r.recv(0, 1)
	r.in(0, append(bytes.Clone(request), 1, 2, 3))
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))

	r = newRig(t)
	r.send(0, []uint32{1})
	r.TakePackets()
	r.in(0, modeltest.Message(0, 1, modeltest.PatternWords(0, 0, 300))...)
	if h, _ := r.deferred.get(0); h.typ != protocol.Data || h.size != 300 {
		t.Fatalf("deferred %v", h)
	}

	r = newRig(t)
	r.recv(0, 1)
	r.in(0, request[:31])
	r.wantOut()
	r.in(0, append([]byte{0}, request[1:]...)) // no start mark
	r.wantOut()
	r.in(0, []byte{mark})
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

// A DATA of 28 bytes whose last four are already in the buffer is shorter than its header, and delivers bytes after it;
// one of 29 resembles a timeout.
func TestDataShorterThanAHeader(t *testing.T) {
	for n, want := range map[int]protocol.Type{28: protocol.Ack, 29: protocol.ClearToSend} {
		r := newRig(t)
		r.cleared(1)
		data := modeltest.Header(protocol.Data, 0, 1, 1)
		other := append(bytes.Clone(data), 1, 2, 3, 4)
		other[0] = 0
		r.in(0, other, data[:n])
		r.wantOut(modeltest.Header(want, 1, 0, 0))
		if want == protocol.Ack {
			r.wantBuffer([]uint32{0x04030201})
		}
	}
	r := newRig(t)
	r.send(0, nil)
	r.TakePackets()
	r.in(0, modeltest.Header(protocol.ClearToSend, 0, 1, 0xfffffffd))
	r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
}

func TestTimeouts(t *testing.T) {
	r := newRig(t)
	r.send(0, []uint32{9})
	for _, d := range []time.Duration{0, 100 * ms, 1100 * ms} {
		r.after(d)
		r.wantOut(modeltest.Header(protocol.SendRequest, 1, 0, 0))
		r.wantStuck("")
	}
	// The count of timeouts is the same for DATA, and a dropped datagram restarts the timeout.
	r.in(0, clear0)
	r.wantOut(modeltest.Message(1, 0, []uint32{9})...)
	r.after(2000 * ms)
	r.in(2, []byte("no header"))
	r.after(2099 * ms)
	r.wantOut()
	r.after(ms)
	r.wantOut(modeltest.Message(1, 0, []uint32{9})...)
	if at, ok := r.NextEvent(); ok {
		t.Fatalf("a fourth timeout at %v", at)
	}
	r.after(time.Hour)
	r.wantOut()
	r.wantStuck("rank 1: call with rank 0, 1 words: wait for ACK: 3 timeouts have expired")
	r.in(0, ack0)
	r.wantStuck("")

	r = newRig(t)
	r.recv(0, 1)
	r.after(time.Hour)
	r.wantOut()
	r.wantStuck("") // by design
	r.in(0, request)
	for _, d := range []time.Duration{0, 100 * ms, 1100 * ms, 2100 * ms} {
		r.after(d)
		r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	}
	r.wantStuck("wait for DATA")
}

// After its third timeout, a receive waits forever for the rest of a message, and mistakes a retransmission for it.
func TestStuckInMidMessage(t *testing.T) {
	r := newRig(t)
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	r.cleared(1001)
	r.after(10 * time.Second)
	r.TakePackets()
	r.in(0, d[0], d[2])
	r.after(time.Hour)
	r.wantStuck("2620 of 4036 bytes were received")
	r.in(0, d...)
	r.wantAck(slices.Concat(words[:346], words[700:], words[346:700]))
}

// No message is acknowledged twice, and retransmitted DATA is deferred.
func TestAcksOnce(t *testing.T) {
	r := newRig(t)
	r.cleared(1)
	d := modeltest.Message(0, 1, []uint32{4})[0]
	r.in(0, d, d, d)
	r.wantAck([]uint32{4})
	r.recv(0, 1)
	r.after(time.Hour)
	r.wantOut()
}

// Nothing is read between calls, and the socket's buffer is bounded.
func TestSocket(t *testing.T) {
	r := &rig{Model: New(Config{Rank: 1, Peers: []int{0}, SocketBytes: 100}), t: t}
	r.in(0, request, request, request, request)
	if r.Dropped() != 1 {
		t.Fatalf("%d datagrams were dropped, want 1", r.Dropped())
	}
	r.recv(0, 1)
	r.in(0, modeltest.Message(0, 1, []uint32{3})...)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0), modeltest.Header(protocol.Ack, 1, 0, 0))
}

// A process that resumes after a stall reads the datagrams in the socket, although the timeout has expired.
func TestStall(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	r := newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.after(10 * ms)
	r.Stall(r.clock, 200*ms)
	r.after(150 * ms)
	r.in(0, d...) // 160 ms after the last datagram
	r.wantOut()
	if at, ok := r.NextEvent(); !ok || at != 210*ms {
		t.Fatalf("runs again at %v, %v", at, ok)
	}
	r.after(50 * ms)
	r.wantAck(slices.Concat(words[:346], words[700:], words[346:700]))

	// Without a datagram, the timeout expires when the process resumes.
	r = newRig(t)
	r.cleared(1001)
	r.in(0, d[0], d[2])
	r.Stall(r.clock, 200*ms)
	r.after(199 * ms)
	r.wantOut()
	r.after(ms)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
	r.in(0, d...)
	r.wantAck(words)
}

// A call that is made while the process is stalled begins afterwards.
func TestStalledBeforeACall(t *testing.T) {
	r := newRig(t)
	r.Stall(0, 50*ms)
	if err := r.Recv(r.clock, 0, 1); err != nil {
		t.Fatal(err)
	}
	r.in(0, request)
	r.wantOut()
	r.after(50 * ms)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0))
}

// A signal that stops the process ends a wait with a timeout with EINTR, and the library counts -1 bytes: in
// mid-message, all later bytes are stored one byte too early.
func TestStop(t *testing.T) {
	words := modeltest.PatternWords(0, 0, 1001)
	d := modeltest.Message(0, 1, words)
	r := newRig(t)
	r.cleared(1001)
	r.in(0, d[0])
	r.Stop(r.clock, ms)
	r.after(ms)
	r.in(0, d[1], d[2])
	r.wantState("wait for DATA")
	r.in(0, []byte{0xee})
	want := slices.Concat(modeltest.EncodeWords(words[:346])[:1383], modeltest.EncodeWords(words[346:]), []byte{0xee})
	r.wantAck(modeltest.DecodeWords(want))

	// Before the first datagram, or without a timeout, it does no harm.
	r = newRig(t)
	r.recv(0, 1001)
	r.Stop(r.clock, ms)
	r.after(ms)
	r.in(0, request)
	r.Stop(r.clock, ms)
	r.after(ms)
	r.in(0, d...)
	r.wantOut(modeltest.Header(protocol.ClearToSend, 1, 0, 0), modeltest.Header(protocol.Ack, 1, 0, 0))
	r.wantBuffer(words)
}
