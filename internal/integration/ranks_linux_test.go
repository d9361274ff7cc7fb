package integration_test

import (
	"bytes"
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestManyPeers exchanges messages between a rank with one socket and 64 FPGAs and 1,000 ranks of the extended profile
// at once. It checks that the rank has no goroutine per peer.
func TestManyPeers(t *testing.T) {
	const fpgas, others = 64, 1000
	rounds := [][]int{{8, 1000, 4, 400}, {8, 1000, 100_000, 4}, {4, 1200, 4, 8}}
	c := newCrowd(t, 83, fpgas, others)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	defer c.close(ctx, t)
	if c.goroutines > 2 {
		t.Errorf("%d goroutines came with an engine of %d peers", c.goroutines, fpgas+others)
	}
	x := newRoundTrips(c)
	each := uint64(0)
	for number, sizes := range rounds {
		start := time.Now()
		if err := x.round(ctx, number, sizes); err != nil {
			t.Fatal(err)
		}
		each += uint64(len(sizes))
		t.Logf("round %d: %v", number, time.Since(start).Round(time.Millisecond))
	}
	// Timers of the stand-ins may be running in a few goroutines.
	if n := runtime.NumGoroutine() - c.before; n > fpgas+10 {
		t.Errorf("there are %d goroutines more than before", n)
	}
	s := c.engine.Snapshot()
	var retransmissions, messages uint64
	for _, p := range s.Peers {
		messages += p.Received
		if p.Sent != each || p.Received != each || p.Failed != 0 {
			t.Errorf("rank %d: %d messages were sent, %d received, %d failed", p.Rank, p.Sent, p.Received, p.Failed)
		}
		if p.Extended != nil {
			retransmissions += p.Extended.Retransmissions
		}
	}
	if s.Posted+s.Unexpected > 0 {
		t.Errorf("%d receives and %d messages are left", s.Posted, s.Unexpected)
	}
	t.Logf("%d messages there and back, in %d groups of peers; %d packets retransmitted", messages, len(x.groups),
		retransmissions)
}

// roundTrips sends messages to many peers and receives the echoes.
type roundTrips struct {
	c *crowd
	// groups lists the numbers of peers that take part at the same time.
	groups []int
	// noise is the source of message contents, and bufs holds buffers for the echoes.
	noise []byte
	bufs  [][]byte
	ops   []*mpe.Request
}

// newRoundTrips divides the peers into groups whose packets fit into the rank's socket.
func newRoundTrips(c *crowd) *roundTrips {
	peers := c.fpgas + c.others
	x := &roundTrips{c: c, noise: make([]byte, 4*peers+1_000_000)}
	pattern(x.noise, 0, 0)
	// The kernel accounts for more than the bytes of a datagram. An FPGA sends all datagrams of a message at once.
	const datagram = 2304
	_, granted := c.conn.ReceiveBuffer()
	room := 0
	for rank := 1; rank <= peers; rank++ {
		need := farWindow * datagram
		if rank <= c.fpgas {
			need = (crowdWords*4/protocol.CPUShape().MaxDatagram + 2) * datagram
		}
		if room -= need; room < 0 {
			x.groups, room = append(x.groups, 0), 2*granted-need
		}
		x.groups[len(x.groups)-1]++
	}
	return x
}

// data returns a message that differs from all others, in this round and in other rounds.
func (x *roundTrips) data(number, rank, i, size int) []byte {
	from := 4 * (rank + 2000*((8*number+i)%100))
	return x.noise[from : from+size]
}

// round sends messages of these sizes to every peer and receives the echoes.
func (x *roundTrips) round(ctx context.Context, number int, sizes []int) error {
	first := 1
	for _, n := range x.groups {
		if err := x.group(ctx, number, first, n, sizes); err != nil {
			return err
		}
		first += n
	}
	return nil
}

func (x *roundTrips) group(ctx context.Context, number, first, n int, sizes []int) error {
	x.ops = x.ops[:0]
	for rank := first; rank < first+n; rank++ {
		for i, size := range x.lengths(rank, sizes) {
			buf := x.buf(len(x.ops)/2, size)
			// A long message may be echoed after the next message.
			opts := mpe.Options{Tag: i}
			r, err := x.c.engine.Irecv(rank, buf, opts)
			if err != nil {
				return err
			}
			s, err := x.c.engine.Isend(rank, x.data(number, rank, i, size), opts)
			if err != nil {
				return err
			}
			x.ops = append(x.ops, r, s)
		}
	}
	for _, op := range x.ops {
		if _, err := op.Wait(ctx); err != nil {
			return err
		}
		op.Free()
	}
	for rank := first; rank < first+n; rank++ {
		for i, size := range x.lengths(rank, sizes) {
			if !bytes.Equal(x.bufs[(rank-first)*len(sizes)+i][:size], x.data(number, rank, i, size)) {
				return fmt.Errorf("message %d of round %d from rank %d is corrupt", i, number, rank)
			}
		}
	}
	return nil
}

// lengths returns the message lengths for a rank. For ranks of the extended profile, it caps them, because a thousand
// long messages would take minutes on a busy machine.
func (x *roundTrips) lengths(rank int, sizes []int) []int {
	if rank <= x.c.fpgas {
		return sizes
	}
	short := slices.Clone(sizes)
	for i, size := range short {
		short[i] = min(size, 24_000)
	}
	return short
}

// buf returns the cleared buffer of a receive.
func (x *roundTrips) buf(i, size int) []byte {
	if i == len(x.bufs) {
		x.bufs = append(x.bufs, nil)
	}
	if cap(x.bufs[i]) < size {
		x.bufs[i] = make([]byte, size)
	}
	buf := x.bufs[i][:size]
	clear(buf)
	return buf
}
