//go:build linux

package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// wire is a transport between two ranks that can be polled, but not awaited.
type wire struct {
	rank  int
	other *wire
	pipe  [2]*os.File // a byte for each received packet

	mu     sync.Mutex
	queue  [][]byte
	failed error // error that Poll returns once
	closed bool
	// into is called by pollInto before it receives a packet.
	into func()
	// paced is the result of Paced. If true, SendData closes holds and waits for hold.
	paced       bool
	hold, holds chan struct{}
}

var (
	_ mpe.PollTransport      = (*wire)(nil)
	_ mpe.DatagramTransport  = (*wire)(nil)
	_ mpe.HandshakeTransport = (*wire)(nil)
)

func newWires(t *testing.T) (a, b *wire) {
	t.Helper()
	ends := [2]*wire{{rank: 0}, {rank: 1}}
	for i, w := range ends {
		w.other = ends[1-i]
		var err error
		if w.pipe[0], w.pipe[1], err = os.Pipe(); err != nil {
			t.Fatal(err)
		}
		if err := syscall.SetNonblock(int(w.pipe[0].Fd()), true); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { w.pipe[0].Close(); w.pipe[1].Close() })
	}
	return ends[0], ends[1]
}

func (w *wire) LocalAddr() netip.AddrPort { return netip.AddrPort{} }
func (w *wire) Reliable() bool            { return false }
func (w *wire) CanPoll() bool             { return true }
func (w *wire) Wakeup() int               { return int(w.pipe[0].Fd()) }
func (w *wire) Recv([]mpe.RxPacket) (int, error) {
	panic("a transport that can be polled is not waited for")
}

func (w *wire) put(parts ...[]byte) {
	o := w.other
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, bytes.Join(parts, nil))
	o.pipe[1].Write([]byte{1})
}

func (w *wire) SendHeader(_ int, header []byte) error {
	w.put(header)
	return nil
}

func (w *wire) SendData(_ int, header, payload []byte, _ protocol.Shape) error {
	if w.Paced(0, len(payload)) {
		close(w.holds)
		<-w.hold
	}
	first := min(len(payload), protocol.MaxDatagram-protocol.HeaderLen)
	w.put(header, payload[:first])
	for rest := payload[first:]; len(rest) > 0; rest = rest[min(len(rest), protocol.MaxDatagram):] {
		w.put(rest[:min(len(rest), protocol.MaxDatagram)])
	}
	return nil
}

func (w *wire) Paced(_, bytes int) bool { return w.paced && bytes > 100 }

func (w *wire) LongestDatagram(int) int { return 0 }

func (w *wire) SendPackets(_ int, packets []mpe.Packet) (int, error) {
	for i := range packets {
		w.put(packets[i].Header[:], packets[i].Payload)
	}
	return len(packets), nil
}

// Poll receives one packet if there are placements, and moves its payload to the placement if there is only one.
func (w *wire) Poll(batch []mpe.RxPacket, at *mpe.Placements) (int, error) {
	if at != nil {
		return w.pollInto(batch, at.Single())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return 0, mpe.ErrTransportClosed
	}
	if err := w.failed; err != nil {
		w.failed = nil
		return 0, err
	}
	n := min(len(batch), len(w.queue))
	for i := range batch[:n] {
		batch[i] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: 1 - w.rank, Bytes: w.queue[i]}
		w.pipe[0].Read(make([]byte, 1))
	}
	w.queue = w.queue[n:]
	return n, nil
}

func (w *wire) pollInto(batch []mpe.RxPacket, l *mpe.Placement) (int, error) {
	if w.into != nil {
		w.into()
	}
	n, err := w.Poll(batch[:1], nil)
	if n == 1 && l.HeaderLen == 0 && len(batch[0].Bytes) <= len(l.Buf) {
		batch[0].Bytes = l.Buf[:copy(l.Buf, batch[0].Bytes)]
	}
	return n, err
}

func (w *wire) Sleep() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.queue) == 0
}

func (w *wire) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	return nil
}

// overWires starts two engines connected by wires.
func overWires(t *testing.T, profile protocol.Profile, watch mpe.Observer) (a, b *mpe.Engine, x, y *wire) {
	t.Helper()
	x, y = newWires(t)
	var engines [2]*mpe.Engine
	for rank, w := range []*wire{x, y} {
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2), Observer: watch}
		rules := handshake.SoftwarePeer()
		cfg.Peers[1-rank] = mpe.Peer{Transport: w, Handshake: handshake.Config{
			Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
		}}
		if profile == protocol.Extended {
			cfg.Peers[1-rank].Extended = &extended.Config{Seed: uint64(rank) + 1, MaxPayload: 65_435}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		engines[rank] = e
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			e.Close(ctx)
		})
	}
	return engines[0], engines[1], x, y
}

// TestWaitersAreServed checks that a waiter is served whether it polls or sleeps, and that a waiter on a channel is
// served, too.
func TestWaitersAreServed(t *testing.T) {
	for _, profile := range []protocol.Profile{protocol.CloudFPGA, protocol.Extended} {
		t.Run(profile.String(), func(t *testing.T) {
			a, b, _, _ := overWires(t, profile, nil)
			for i := range 200 {
				buf, asleep := make([]byte, 400), i%2 == 0
				r, err := b.Irecv(0, buf, mpe.Options{})
				if err != nil {
					t.Fatal(err)
				}
				end := make(chan error, 1)
				go func() {
					if i%4 < 2 {
						_, err := r.Wait(t.Context())
						end <- err
						return
					}
					c := make(chan struct{}, 1)
					r.Notify(c)
					end <- b.Await(t.Context(), c)
				}()
				if asleep {
					for b.Waiting() == 0 {
						runtime.Gosched()
					}
				}
				data := words(100, uint32(i))
				if _, err := a.Send(t.Context(), 1, data, mpe.Options{}); err != nil {
					t.Fatal(err)
				}
				if err := <-end; err != nil || !bytes.Equal(buf, data) {
					t.Fatalf("message %d: %v", i, err)
				}
			}
		})
	}
}

// watcher counts the errors of a transport.
type watcher struct {
	mpe.Observer
	errs chan error
}

func (w *watcher) TransportError(_ int, err error) { w.errs <- err }

func (w *watcher) Done(int, mpe.Status, error) {}

func (w *watcher) Noted(int, int, mpe.Note) {}

// TestTransportThatFailsToPoll checks that a failing transport is polled again only after a delay.
func TestTransportThatFailsToPoll(t *testing.T) {
	watch := &watcher{errs: make(chan error, 100)}
	a, b, _, y := overWires(t, protocol.CloudFPGA, watch)
	broken := errors.New("broken")
	y.mu.Lock()
	y.failed = broken
	y.mu.Unlock()
	data, buf := words(10, 1), make([]byte, 40)
	r, err := b.Irecv(0, buf, mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	go a.Send(t.Context(), 1, data, mpe.Options{})
	if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, data) {
		t.Errorf("%v", err)
	}
	if err := <-watch.errs; !errors.Is(err, broken) || len(watch.errs) > 0 {
		t.Errorf("%v, and %d more", err, len(watch.errs))
	}
}

// TestPacedMessagesHoldNobodyUp checks that the engine continues to work while a paced message is being sent.
func TestPacedMessagesHoldNobodyUp(t *testing.T) {
	a, b, x, _ := overWires(t, protocol.CloudFPGA, nil)
	x.paced, x.hold, x.holds = true, make(chan struct{}), make(chan struct{})
	long, buf := words(1000, 1), make([]byte, 4000)
	in, err := b.Irecv(0, buf, mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Isend(1, long, mpe.Options{})
	if err != nil {
		t.Fatal(err)
	}
	<-x.holds
	word := make([]byte, 4)
	if _, err := a.Send(t.Context(), 0, words(1, 7), mpe.Options{}); err != nil {
		t.Error(err)
	}
	if _, err := a.Recv(t.Context(), 0, word, mpe.Options{}); err != nil {
		t.Error(err)
	}
	if _, ended, _ := out.Test(); ended {
		t.Error("the paced message is gone")
	}
	close(x.hold)
	for _, r := range []*mpe.Request{in, out} {
		if _, err := r.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if !bytes.Equal(buf, long) {
		t.Error("the paced message arrived corrupt")
	}
}

// TestRevokedPlacement checks that payload written to a revoked placement is not read: the memory may
// have another use.
func TestRevokedPlacement(t *testing.T) {
	_, b, _, y := overWires(t, protocol.CloudFPGA, nil)
	noise := []mpe.RxPacket{{Kind: mpe.RxDatagram, Peer: mpe.UnknownPeer, Bytes: make([]byte, 7)}}
	before := b.Placement()
	b.Revoke()
	for _, tt := range []struct {
		gen     uint32
		dropped uint64
	}{{before, 0}, {0, 1}, {b.Placement(), 2}} {
		b.ArrivedIn(y, noise, tt.gen)
		if n := b.Snapshot().Dropped[state.DropUnknownAddress]; n != tt.dropped {
			t.Errorf("placement %d: %d packets were dropped, want %d", tt.gen, n, tt.dropped)
		}
	}
}

// TestPlacements checks that long messages are placed directly, and short ones are not.
func TestPlacements(t *testing.T) {
	a, b, _, y := overWires(t, protocol.CloudFPGA, nil)
	var placements atomic.Int32
	y.into = func() { placements.Add(1) }
	for _, n := range []int{1000, 100_000} {
		placements.Store(0)
		data, buf := words(n, 3), make([]byte, 4*n)
		r, err := b.Irecv(0, buf, mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		go a.Send(t.Context(), 1, data, mpe.Options{})
		if _, err := r.Wait(t.Context()); err != nil || !bytes.Equal(buf, data) {
			t.Errorf("%d words: %v", n, err)
		}
		if got := placements.Load(); (got > 100) != (n == 100_000) {
			t.Errorf("%d words: %d placements", n, got)
		}
	}
}

// TestPlacementOfClearedMessages checks that the payload requested by a CLEAR_TO_SEND is placed directly from
// the first packet, whether the message or its receive came first.
func TestPlacementOfClearedMessages(t *testing.T) {
	a, b, _, y := overWires(t, protocol.Extended, nil)
	var placements atomic.Int32
	y.into = func() { placements.Add(1) }
	for _, late := range []bool{false, true} {
		placements.Store(0)
		// A message that arrives before its placement is known is not placed.
		for tries := 0; placements.Load() == 0; tries++ {
			if tries == 50 {
				t.Fatalf("receive posted late: %v: no placement", late)
			}
			data, buf := words(15_000, 3), make([]byte, 60_000) // one packet
			recv := mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf}
			var r mpe.Op
			if !late {
				r = start(t, b, recv)
			}
			s := start(t, a, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: data})
			if late {
				if _, _, err := b.Probe(t.Context(), mpe.Match{Source: 0}, true); err != nil {
					t.Fatal(err)
				}
				r = start(t, b, recv)
			}
			for _, op := range []mpe.Op{r, s} {
				if _, err := op.Await(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			if !bytes.Equal(buf, data) {
				t.Errorf("receive posted late: %v: the received data is wrong", late)
			}
		}
	}
}
