package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/udp"
)

// longCable wraps a real transport. It delays packets by a fixed time and keeps their order.
type longCable struct {
	mpe.Transport
	delay time.Duration
	queue chan delayed
}

type delayed struct {
	due    time.Time
	peer   int
	packet mpe.Packet
}

func newLongCable(b *testing.B, tr mpe.Transport, delay time.Duration) *longCable {
	c := &longCable{Transport: tr, delay: delay, queue: make(chan delayed, 1<<16)}
	b.Cleanup(func() { close(c.queue) })
	go func() {
		for d := range c.queue {
			if wait := time.Until(d.due); wait > 0 {
				time.Sleep(wait)
			}
			if _, err := c.Transport.SendPackets(d.peer, []mpe.Packet{d.packet}); err != nil {
				return // the transport is closed
			}
		}
	}()
	return c
}

// SendPackets queues all packets.
func (c *longCable) SendPackets(peer int, packets []mpe.Packet) (int, error) {
	due := time.Now().Add(c.delay)
	for _, p := range packets {
		p.Payload = bytes.Clone(p.Payload)
		c.queue <- delayed{due, peer, p}
	}
	return len(packets), nil
}

// BenchmarkLongPath sends messages of 8 MiB over UDP, in packets of 1416 bytes, on a path without loss.
func BenchmarkLongPath(b *testing.B) {
	for i, ms := range []int{12, 24, 25, 30, 50, 100} {
		b.Run(fmt.Sprintf("rtt=%dms", 2*ms),
			func(b *testing.B) { benchLongPath(b, byte(140+i), time.Duration(ms)*time.Millisecond) })
	}
}

func benchLongPath(b *testing.B, net byte, oneWay time.Duration) {
	const size = 8 << 20
	m, err := rankmap.New([]rankmap.Entry{
		{Rank: 0, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, net, 1}), 27180), Kind: rankmap.Software},
		{Rank: 1, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, net, 2}), 27180), Kind: rankmap.Software},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(b.Context(), 5*time.Minute)
	defer cancel()
	var engines [2]*mpe.Engine
	for rank := range engines {
		tr, err := udp.Listen(udp.Config{Rank: rank, Map: m})
		if err != nil {
			b.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		cfg.Peers[1-rank] = mpe.Peer{Transport: newLongCable(b, tr, oneWay),
			Extended: &extended.Config{Seed: uint64(rank) + 1}}
		if engines[rank], err = mpe.New(cfg); err != nil {
			b.Fatal(err)
		}
		defer engines[rank].Close(ctx)
	}
	data, buf := make([]byte, size), make([]byte, size)
	b.SetBytes(size)
	for b.Loop() {
		received := make(chan error, 1)
		go func() { received <- transfer(ctx, engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: buf}) }()
		if err := transfer(ctx, engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data}); err != nil {
			b.Fatal(err)
		}
		if err := <-received; err != nil {
			b.Fatal(err)
		}
	}
	x := engines[0].Snapshot().Peers[0].Extended
	b.ReportMetric(float64(x.Retransmissions)/float64(b.N), "retransmissions/op")
}

func transfer(ctx context.Context, e *mpe.Engine, op mpe.Operation) error {
	o, err := e.Start(op)
	if err != nil {
		return err
	}
	_, err = o.Await(ctx)
	return err
}
