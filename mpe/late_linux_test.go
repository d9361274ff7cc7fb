package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// lateWire is a wire with packets that do not wake the poller, as if the system had delayed the poller.
type lateWire struct {
	*wire
	late [][]byte // guarded by mu
	// slept is called when the poller has polled and is about to sleep.
	slept func()
	// flood makes every Poll return packets.
	flood atomic.Bool
}

// Poll returns one packet at a time, so that timeouts could expire between any two.
func (w *lateWire) Poll(batch []mpe.RxPacket, _ *mpe.Placements) (int, error) {
	n, err := w.wire.Poll(batch[:1], nil)
	if n > 0 || err != nil {
		return n, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case len(w.late) > 0:
		batch[0] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: 0, Bytes: w.late[0]}
		w.late = w.late[1:]
	case w.flood.Load():
		batch[0] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: 0, Bytes: make([]byte, 20)}
	default:
		return 0, nil
	}
	return 1, nil
}

func (w *lateWire) Sleep() bool {
	w.mu.Lock()
	idle := len(w.queue)+len(w.late) == 0
	w.mu.Unlock()
	if idle && w.slept != nil {
		w.slept()
	}
	return idle
}

// quietly adds packets without waking the poller.
func (w *lateWire) quietly(packets ...[]byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.late = append(w.late, packets...)
}

// lateEngine returns rank 1, whose deadlines expire as soon as they begin. A wire connects it to rank 0, an FPGA
// that the test plays.
func lateEngine(t *testing.T) (*mpe.Engine, *lateWire, *wire) {
	t.Helper()
	zero, one := newWires(t)
	w := &lateWire{wire: one}
	soon := handshake.Backoff{First: 1, Retransmissions: 1 << 20}
	e, err := mpe.New(mpe.Config{Rank: 1, Peers: []mpe.Peer{{Transport: w, Handshake: handshake.Config{
		Peer: handshake.FPGAPeer(0), Shape: protocol.CPUShape(), MaxWords: 1 << 20, Timing: handshake.Timing{
			Clear: handshake.Backoff{First: time.Hour, Retransmissions: 1}, Ack: soon, Data: soon,
			AckDeadline: 1, DataDeadline: 1, FragmentGap: time.Hour,
		},
	}}, {}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		e.Close(ctx)
	})
	return e, w, zero
}

// packets returns the datagrams of a packet from rank 0 to rank 1.
func packets(typ protocol.Type, call protocol.Call, payload []byte) [][]byte {
	h := protocol.Header{Dst: 1, Type: typ, Call: call, Size: uint32(len(payload) / protocol.WordLen)}
	all := protocol.CloudFPGA.Append(nil, h)
	first := min(len(payload), protocol.MaxDatagram-protocol.HeaderLen)
	out := [][]byte{append(all, payload[:first]...)}
	for rest := payload[first:]; len(rest) > 0; rest = rest[min(len(rest), protocol.MaxDatagram):] {
		out = append(out, rest[:min(len(rest), protocol.MaxDatagram)])
	}
	return out
}

// sent reports whether rank 0 was sent a packet of type typ.
func (w *wire) sent(typ protocol.Type) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.queue, func(b []byte) bool {
		h, defect := protocol.CloudFPGA.Parse(b)
		return defect.OK() && h.Type == typ
	})
}

// TestArrivedBeforeTimeout checks that a rank that was delayed reads its socket when a deadline expires,
// before it acts on the deadline: a fragmented message, for example, must not be retransmitted to an FPGA.
func TestArrivedBeforeTimeout(t *testing.T) {
	data := words(40_000, 5)
	ask := packets(protocol.SendRequest, protocol.SendInt, nil)
	clear := packets(protocol.ClearToSend, protocol.RecvInt, nil)
	message := packets(protocol.Data, protocol.SendInt, data)
	ack := packets(protocol.Ack, protocol.RecvInt, nil)

	t.Run("while it polls", func(t *testing.T) {
		e, w, _ := lateEngine(t)
		buf := make([]byte, len(data))
		r, err := e.Irecv(0, buf, mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		// A full socket of other packets precedes it.
		others := slices.Repeat([][]byte{make([]byte, 20)}, 16_000)
		w.quietly(slices.Concat(ask, others, message)...)
		if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, data) {
			t.Errorf("intact %v: %v", bytes.Equal(buf, data), err)
		}
		notRetransmitted(t, e)
	})
	for _, tt := range []struct {
		name   string
		first  [][]byte      // first packets
		answer protocol.Type // rank 1's answer to them
		then   [][]byte      // later packets
		start  func(e *mpe.Engine, buf []byte) (*mpe.Request, error)
	}{
		{"DATA", ask, protocol.ClearToSend, message, func(e *mpe.Engine, buf []byte) (*mpe.Request, error) {
			return e.Irecv(0, buf, mpe.Options{})
		}},
		{"ACK", clear, protocol.Data, ack, func(e *mpe.Engine, buf []byte) (*mpe.Request, error) {
			copy(buf, data)
			return e.Isend(0, buf, mpe.Options{})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e, w, zero := lateEngine(t)
			came := false
			w.slept = func() { // after the poller has polled
				if !came && zero.sent(tt.answer) {
					came = true
					w.quietly(tt.then...)
				}
			}
			buf := make([]byte, len(data))
			r, err := tt.start(e, buf)
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{}, 1)
			r.Notify(ended)
			zero.put(tt.first[0])
			<-ended // nothing polls
			if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, data) {
				t.Errorf("intact %v: %v", bytes.Equal(buf, data), err)
			}
			notRetransmitted(t, e)
		})
	}
}

// notRetransmitted checks that rank 1 has not retransmitted anything.
func notRetransmitted(t *testing.T, e *mpe.Engine) {
	t.Helper()
	events := e.Snapshot().Peers[0].Events
	for _, ev := range []state.Event{state.EventRetransmitted, state.EventStartedOver} {
		if n := events[ev]; n > 0 {
			t.Errorf("%v %d times", ev, n)
		}
	}
}

// TestTimeoutInAFlood checks that timeouts expire during a flood.
func TestTimeoutInAFlood(t *testing.T) {
	e, w, zero := lateEngine(t)
	r, err := e.Irecv(0, make([]byte, 4), mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.flood.Store(true)
	w.pipe[1].Write([]byte{1}) // never read
	zero.put(packets(protocol.SendRequest, protocol.SendInt, nil)[0])
	if _, err := r.Wait(t.Context()); !errors.Is(err, handshake.ErrTimeout) {
		t.Errorf("%v", err)
	}
}
