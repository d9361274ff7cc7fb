package mpe_test

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// silent is the transport of rank 1 in a cluster of two. Its peer clears every message and acknowledges none. A
// function determines how long the writing of a DATA message takes, and its error.
type silent struct {
	reliable bool
	takes    func(attempt int) (time.Duration, error)
	in       chan mpe.RxPacket
	once     sync.Once

	mu       sync.Mutex
	attempts int
}

func (s *silent) LocalAddr() netip.AddrPort                  { return netip.MustParseAddrPort("127.0.0.1:2718") }
func (s *silent) Reliable() bool                             { return s.reliable }
func (s *silent) Paced(_, bytes int) bool                    { return !s.reliable && bytes > 0 }
func (s *silent) LongestDatagram(int) int                    { return 0 }
func (s *silent) SendPackets(int, []mpe.Packet) (int, error) { return 0, nil }

func (s *silent) SendHeader(_ int, header []byte) error {
	h, defect := protocol.CloudFPGA.Parse(header)
	if !defect.OK() || h.Type != protocol.SendRequest {
		return nil
	}
	var b [protocol.HeaderLen]byte
	protocol.CloudFPGA.Put(b[:],
		protocol.Header{Dst: h.Src, Src: h.Dst, Call: h.Call.Counterpart(), Type: protocol.ClearToSend})
	kind := mpe.RxDatagram
	if s.reliable {
		kind = mpe.RxHeader
	}
	s.in <- mpe.RxPacket{Kind: kind, Peer: 1, Bytes: b[:]}
	return nil
}

func (s *silent) SendData(int, []byte, []byte, protocol.Shape) error {
	s.mu.Lock()
	s.attempts++
	attempt := s.attempts
	s.mu.Unlock()
	if s.takes == nil {
		return nil
	}
	d, err := s.takes(attempt)
	<-time.After(d)
	return err
}

func (s *silent) Recv(batch []mpe.RxPacket) (int, error) {
	a, ok := <-s.in
	if !ok {
		return 0, mpe.ErrTransportClosed
	}
	batch[0] = a
	return 1, nil
}

func (s *silent) Close() error {
	s.once.Do(func() { close(s.in) })
	return nil
}

// TestDeadlineAfterDataWritten checks that the wait for an ACK is bounded however DATA is written: at once,
// or by a separate goroutine, as for long messages to a stream and for paced ones.
func TestDeadlineAfterDataWritten(t *testing.T) {
	errStuck := errors.New("the peer takes nothing")
	fpga := handshake.DefaultTiming(handshake.SoftwarePeer())
	for name, test := range map[string]struct {
		bytes    int
		reliable bool
		takes    func(attempt int) (time.Duration, error)
		within   time.Duration
		attempts int
	}{
		"stream, short":  {bytes: 60_000, reliable: true, within: fpga.AckDeadline, attempts: 1},
		"stream, long":   {bytes: 64 << 10, reliable: true, within: fpga.AckDeadline, attempts: 1},
		"stream, longer": {bytes: 4 << 20, reliable: true, within: fpga.AckDeadline, attempts: 1},
		"stream, slow writes": {bytes: 4 << 20, reliable: true,
			takes: func(int) (time.Duration, error) { return time.Minute, nil }, within: time.Minute + fpga.AckDeadline,
			attempts: 1},
		"stream, stuck": {bytes: 4 << 20, reliable: true,
			takes:  func(int) (time.Duration, error) { return 10 * time.Second, errStuck },
			within: 10*time.Second + fpga.AckDeadline, attempts: 1},
		// A paced message is retransmitted, like any other that a datagram network may have lost.
		"paced, slow": {bytes: 4 << 10, takes: func(int) (time.Duration, error) { return time.Second, nil },
			within: time.Second + fpga.AckDeadline, attempts: 4},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := &silent{reliable: test.reliable, takes: test.takes, in: make(chan mpe.RxPacket, 1)}
				e, err := mpe.New(mpe.Config{Peers: []mpe.Peer{{}, {Transport: tr, Handshake: handshake.Config{
					Shape: protocol.CPUShape(), Timing: fpga, MaxWords: 1 << 21,
				}}}})
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
				defer cancel()
				_, err = e.Send(ctx, 1, make([]byte, test.bytes), mpe.Options{})
				var timeout *handshake.TimeoutError
				if !errors.As(err, &timeout) || timeout.Wait.State != handshake.WaitAck {
					t.Errorf("the send ended with %v", err)
				}
				if took := time.Since(start); took != test.within {
					t.Errorf("it took %v, not %v", took, test.within)
				}
				if tr.attempts != test.attempts {
					t.Errorf("DATA was sent %d times, not %d", tr.attempts, test.attempts)
				}
				if err := e.Close(ctx); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// TestDeadlineIsOfItsOwnMessage checks that, when the write of a failed message ends, the wait of the next message
// does not start.
func TestDeadlineIsOfItsOwnMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		timing := handshake.DefaultTiming(handshake.SoftwarePeer())
		tr := &silent{reliable: true, in: make(chan mpe.RxPacket, 2),
			takes: func(int) (time.Duration, error) { return time.Minute, nil }}
		e, err := mpe.New(mpe.Config{Peers: []mpe.Peer{{}, {Transport: tr, Handshake: handshake.Config{
			Shape: protocol.CPUShape(), Timing: timing, MaxWords: 1 << 21,
		}}}})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		start := time.Now()
		first, err := e.Isend(1, make([]byte, 1<<20), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		second, err := e.Isend(1, make([]byte, 1<<20), mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		<-time.After(time.Second)
		var b [protocol.HeaderLen]byte
		protocol.CloudFPGA.Put(b[:], protocol.Header{Src: 1, Call: protocol.RecvInt, Type: protocol.Error})
		tr.in <- mpe.RxPacket{Kind: mpe.RxHeader, Peer: 1, Bytes: b[:]}
		if _, err := first.Wait(ctx); err == nil {
			t.Error("the first send succeeded")
		}
		// The second DATA is queued behind the first, and its write takes a minute.
		var timeout *handshake.TimeoutError
		if _, err := second.Wait(ctx); !errors.As(err, &timeout) {
			t.Errorf("the second send ended with %v", err)
		}
		if took, want := time.Since(start), 2*time.Minute+timing.AckDeadline; took != want {
			t.Errorf("it took %v, not %v", took, want)
		}
		if err := e.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
