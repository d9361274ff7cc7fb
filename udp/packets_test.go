package udp

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// numbered returns n packets of different lengths and contents, and their datagrams.
func numbered(n int) (packets []mpe.Packet, datagrams [][]byte) {
	packets = make([]mpe.Packet, n)
	for i := range packets {
		p := &packets[i]
		p.Header[0], p.Header[protocol.ExtHeaderLen-1] = byte(i), byte(i+1)
		p.Payload = bytes.Repeat([]byte{byte(i + 2)}, i*7%100)
		datagrams = append(datagrams, slices.Concat(p.Header[:], p.Payload))
	}
	return packets, datagrams
}

func TestPackets(t *testing.T) {
	eachSocket(t, func(t *testing.T, open func(Config) (*Conn, error)) {
		transporttest.RunPackets(t, transporttest.PacketKind{
			Pair: func(t *testing.T) (a, b *transporttest.End) {
				m := transporttest.Map(t, 2)
				var ends [2]*transporttest.End
				for rank := range ends {
					c, err := open(Config{Rank: rank, Map: m})
					if err != nil {
						t.Fatal(err)
					}
					ends[rank] = transporttest.Start(t, c)
				}
				return ends[0], ends[1]
			},
			MaxPayload: protocol.MaxDatagram - protocol.ExtHeaderLen,
		})
	})
}

func TestSendPackets(t *testing.T) {
	full := func(err error) []step { return slices.Repeat([]step{{0, err}}, maxSendTries) }
	for _, tt := range []struct {
		name  string
		steps []step
		sent  int
		cause error
	}{
		{"all at once", nil, 10, nil},
		{"one by one", slices.Repeat([]step{{1, nil}}, 10), 10, nil},
		{"buffers full for a moment", []step{{1, syscall.ENOBUFS}, {0, syscall.EAGAIN}, {1, nil}, {0, syscall.ENOMEM}},
			10, nil},
		{"errors of earlier", []step{{0, syscall.ECONNREFUSED}, {0, syscall.EINTR}}, 10, nil},
		{"full", full(syscall.ENOBUFS), 0, nil},
		{"full in the middle", slices.Concat([]step{{1, nil}, {1, nil}}, full(syscall.EAGAIN)), 2, nil},
		{"no route", []step{{0, syscall.ENETUNREACH}}, 0, syscall.ENETUNREACH},
		{"filtered in the middle", []step{{1, nil}, {0, syscall.EPERM}}, 1, syscall.EPERM},
	} {
		for _, batch := range []int{1, 4, 64} {
			s := &script{batch: batch, steps: slices.Clone(tt.steps)}
			c := scripted(t, s)
			packets, datagrams := numbered(10)
			sent, err := c.SendPackets(1, packets)
			if sent != tt.sent || !errors.Is(err, tt.cause) || err == nil != (tt.cause == nil) {
				t.Errorf("%s, batch %d: %d sent, %v; want %d, %v", tt.name, batch, sent, err, tt.sent, tt.cause)
			}
			if !slices.EqualFunc(s.sent, datagrams[:tt.sent], bytes.Equal) {
				t.Errorf("%s, batch %d: the datagrams are not the packets", tt.name, batch)
			}
			var sendErr *SendError
			if tt.cause != nil && (!errors.As(err, &sendErr) || sendErr.Peer != 1 || sendErr.Sent != int64(tt.sent) ||
				sendErr.Total != 10) {
				t.Errorf("%s, batch %d: %+v", tt.name, batch, err)
			}
			if s.waited {
				t.Errorf("%s, batch %d: has to wait", tt.name, batch)
			}
			for _, o := range c.outBatch {
				if o.parts[0] != nil || o.parts[1] != nil {
					t.Fatalf("%s, batch %d: holds on to the caller's bytes", tt.name, batch)
				}
			}
		}
	}
}

func TestSendPacketsChecksBeforeSending(t *testing.T) {
	s := &script{batch: 64}
	c := scripted(t, s)
	packets, _ := numbered(3)
	packets[2].Payload = make([]byte, protocol.MaxDatagram-protocol.ExtHeaderLen+1)
	for _, tt := range []struct {
		name  string
		peer  int
		cause error
		text  string
	}{
		{"too long", 1, ErrBadPacket, "packet 3 of 3 has 1417 bytes: a datagram has at most 1416"},
		{"no such peer", 2, ErrNoPeer, "rank 0 cannot send to rank 2"},
		{"negative peer", -1, ErrNoPeer, "rank 0 cannot send to rank -1"},
	} {
		sent, err := c.SendPackets(tt.peer, packets)
		if sent != 0 || !errors.Is(err, tt.cause) || !strings.Contains(err.Error(), tt.text) {
			t.Errorf("%s: %d sent, %v", tt.name, sent, err)
		}
	}
	if s.calls != 0 {
		t.Errorf("the network was called %d times", s.calls)
	}
	packets[2].Payload = packets[2].Payload[1:]
	if sent, err := c.SendPackets(1, packets); sent != 3 || err != nil {
		t.Errorf("packets that fit: %d sent, %v", sent, err)
	}
	if sent, err := c.SendPackets(1, nil); sent != 0 || err != nil {
		t.Errorf("no packets: %d sent, %v", sent, err)
	}
}

func BenchmarkPackets(b *testing.B) {
	c, err := Listen(Config{Map: transporttest.Map(b, 1)})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	packets := make([]mpe.Packet, 64)
	for i := range packets {
		packets[i].Payload = make([]byte, protocol.MaxDatagram-protocol.ExtHeaderLen)
	}
	batch := make([]mpe.RxPacket, ringLen)
	b.SetBytes(int64(len(packets) * protocol.MaxDatagram))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := c.SendPackets(0, packets); n != len(packets) || err != nil {
			b.Fatal(n, err)
		}
		for got := 0; got < len(packets); {
			n, err := c.Recv(batch)
			if err != nil {
				b.Fatal(err)
			}
			got += n
		}
	}
}
