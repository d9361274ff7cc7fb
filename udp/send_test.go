package udp

import (
	"bytes"
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// script is a socket whose send and recv return the results in a list.
type script struct {
	batch int
	steps []step
	sent  [][]byte
	calls int
	// waited is set if a call was allowed to wait.
	waited bool
}

// step is the result of one call: the number of datagrams sent, and the error.
type step struct {
	n   int
	err error
}

func (s *script) capabilities() capabilities {
	return capabilities{sendBatch: s.batch, recvBatch: s.batch}
}
func (s *script) refusals() []Refusal     { return nil }
func (s *script) pathDatagramLen(int) int { return 0 }
func (s *script) drops() (uint32, error)  { return 0, errors.ErrUnsupported }
func (s *script) resolve([]netip.AddrPort) (func(), error) {
	return func() {}, nil
}
func (s *script) close() error { return nil }

func (s *script) step(most int) step {
	s.calls++
	if len(s.steps) == 0 {
		return step{most, nil}
	}
	next := s.steps[0]
	s.steps = s.steps[1:]
	return next
}

func (s *script) send(out []outgoing, mayWait bool) (int, error) {
	s.waited = s.waited || mayWait
	now := s.step(len(out))
	for _, o := range out[:now.n] {
		s.sent = append(s.sent, slices.Concat(o.parts[0], o.parts[1], o.parts[2]))
	}
	return now.n, now.err
}

func (s *script) poll([]incoming) (int, error)                         { return 0, nil }
func (s *script) pollInto(in []incoming, _ int, _ []byte) (int, error) { return 0, nil }
func (s *script) peek([]byte) (n int, from netip.AddrPort, err error)  { return 0, from, nil }
func (s *script) isDrained() bool                                      { return true }
func (s *script) sleep() bool                                          { return true }
func (s *script) unwatch()                                             {}
func (s *script) pollFD() int                                          { return -1 }

func (s *script) recv(in []incoming) (int, error) {
	now := s.step(1)
	return now.n, now.err
}

func scripted(t *testing.T, s *script) *Conn {
	m := transporttest.Map(t, 2)
	c := &Conn{cfg: Config{Map: m}, localAddr: m.Addr(0), sock: s, caps: s.capabilities(),
		outBatch: make([]outgoing, s.batch), buckets: make([]bucket, 2), inBatch: make([]incoming, s.batch)}
	c.peerMap.Store(m)
	return c
}

func dataPacket(words int) (header, payload []byte) {
	header = protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Size: uint32(words), Type: protocol.Data})
	payload = make([]byte, words*protocol.WordLen)
	for i := range payload {
		payload[i] = byte(i)
	}
	return header, payload
}

func TestSendGoesOnAfterTransientErrors(t *testing.T) {
	header, payload := dataPacket(2000) // 6 datagrams
	for name, steps := range map[string][]step{
		"all at once":       nil,
		"one by one":        {{1, nil}, {1, nil}, {1, nil}, {1, nil}, {1, nil}, {1, nil}},
		"with the error":    {{2, syscall.ECONNREFUSED}, {0, syscall.ENOBUFS}, {1, syscall.ENOBUFS}},
		"errors of earlier": {{0, syscall.ECONNREFUSED}, {0, syscall.ECONNREFUSED}, {0, syscall.EINTR}},
		"again and again":   slices.Repeat([]step{{0, syscall.ENOBUFS}, {1, nil}}, 6),
	} {
		for _, batch := range []int{1, 4, 64} {
			s := &script{batch: batch, steps: slices.Clone(steps)}
			for i := range s.steps {
				s.steps[i].n = min(s.steps[i].n, batch)
			}
			c := scripted(t, s)
			if err := c.SendData(1, header, payload, protocol.CPUShape()); err != nil {
				t.Errorf("%s, batch %d: %v", name, batch, err)
				continue
			}
			if len(s.sent) != 6 || !bytes.Equal(slices.Concat(s.sent...), slices.Concat(header, payload)) {
				t.Errorf("%s, batch %d: sent %d datagrams that are not the message", name, batch, len(s.sent))
			}
			for _, o := range c.outBatch {
				if o.parts[0] != nil || o.parts[1] != nil {
					t.Fatalf("%s, batch %d: holds on to the caller's bytes", name, batch)
				}
			}
		}
	}
}

func TestSendErrors(t *testing.T) {
	header, payload := dataPacket(2000)
	for _, tt := range []struct {
		name  string
		steps []step
		sent  int64
		cause error
		text  string
	}{
		{"no route", []step{{0, syscall.ENETUNREACH}}, 0, syscall.ENETUNREACH, "check the rank map and the route"},
		{"too long", []step{{1, nil}, {0, syscall.EMSGSIZE}}, 1, syscall.EMSGSIZE,
			"after 1 of 6 datagrams: message too long: the path MTU"},
		{"filtered", []step{{0, syscall.EPERM}}, 0, syscall.EPERM, "packet filter"},
		{"in mid-batch", []step{{3, syscall.EHOSTUNREACH}}, 3, syscall.EHOSTUNREACH, "after 3 of 6 datagrams"},
		{"full forever", slices.Repeat([]step{{0, syscall.ENOBUFS}}, maxSendTries), 0, syscall.ENOBUFS, "buffer space"},
		{"refused forever", slices.Repeat([]step{{0, syscall.ECONNREFUSED}}, maxSendTries), 0, syscall.ECONNREFUSED,
			"refused"},
		{"closed", []step{{2, nil}, {0, &net.OpError{Op: "write", Err: net.ErrClosed}}}, 2, mpe.ErrTransportClosed,
			"transport is closed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := scripted(t, &script{batch: 64, steps: tt.steps})
			err := c.SendData(1, header, payload, protocol.CPUShape())
			var sendErr *SendError
			if !errors.As(err, &sendErr) || !errors.Is(err, tt.cause) {
				t.Fatalf("the error is %v", err)
			}
			if sendErr.Peer != 1 || sendErr.Addr != c.cfg.Map.Addr(1) || sendErr.Sent != tt.sent || sendErr.Total != 6 {
				t.Errorf("%+v", sendErr)
			}
			for _, text := range []string{"rank 0 cannot send to rank 1 (" + sendErr.Addr.String() + ")", tt.text} {
				if !strings.Contains(err.Error(), text) {
					t.Errorf("%q does not say %q", err, text)
				}
			}
		})
	}
}

func TestWrongUseOfSend(t *testing.T) {
	c := scripted(t, &script{batch: 1})
	header, payload := dataPacket(1)
	for _, tt := range []struct {
		err, cause error
	}{
		{c.SendHeader(5, header), ErrNoPeer},
		{c.SendHeader(1, header[:4]), ErrBadPacket},
		{c.SendData(1, header, payload[:3], protocol.CPUShape()), ErrBadPacket},
		{c.SendData(1, header, payload, protocol.Shape{MaxDatagram: 39}), ErrBadPacket},
	} {
		if !errors.Is(tt.err, tt.cause) {
			t.Errorf("got %v, want %v", tt.err, tt.cause)
		}
	}
}

func TestRecvErrors(t *testing.T) {
	refused := slices.Repeat([]step{{0, syscall.ECONNREFUSED}}, maxRecvErrors)
	c := scripted(t, &script{batch: 4, steps: refused})
	if n, err := c.Recv(make([]mpe.RxPacket, 1)); n != 1 || err != nil {
		t.Errorf("errors of earlier datagrams end Recv: %d, %v", n, err)
	}
	c = scripted(t, &script{batch: 4, steps: slices.Concat(refused, refused)})
	if _, err := c.Recv(make([]mpe.RxPacket, 1)); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("an endless error ends in %v", err)
	}
	c = scripted(t, &script{batch: 4, steps: []step{{0, syscall.ENOMEM}}})
	_, err := c.Recv(make([]mpe.RxPacket, 1))
	if !errors.Is(err, syscall.ENOMEM) || !strings.Contains(err.Error(), c.localAddr.String()) {
		t.Errorf("an error came back as %v", err)
	}
}

func TestPacing(t *testing.T) {
	header, payload := dataPacket(100_000) // 283 datagrams
	for _, tt := range []struct {
		pacing Pacing
		paced  bool
	}{
		{Pacing{}, false},
		{Pacing{OverWords: 1}, false},
		{Pacing{PerDatagram: 10 * time.Microsecond, OverWords: 100_000}, false},
		{Pacing{PerDatagram: 10 * time.Microsecond, OverWords: 99_999}, true},
	} {
		s := &script{batch: 64}
		c := scripted(t, s)
		asked := 0
		c.cfg.Pace = func(peer int) Pacing { asked = peer; return tt.pacing }
		begin := time.Now()
		if err := c.SendData(1, header, payload, protocol.CPUShape()); err != nil {
			t.Fatal(err)
		}
		if asked != 1 || c.Paced(1, len(payload)) != tt.paced {
			t.Errorf("%+v: pacing of rank %d, paced: %v", tt.pacing, asked, !tt.paced)
		}
		if s.calls > 5 {
			t.Errorf("%+v: %d calls", tt.pacing, s.calls)
		}
		if least := (283 - bucketDepth) * tt.pacing.PerDatagram; tt.paced && time.Since(begin) < least {
			t.Errorf("%+v: took less than %v", tt.pacing, least)
		}
	}
}
