package integration_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config/rankmap"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
	"github.com/zrlmpi/zrlmpid/udp"
)

// TestIntegrity sends messages of mixed size both ways over real sockets through
// loss, duplication, reordering and damage: each arrives once, in order, intact.
// ZRLMPI_INTEGRITY_MESSAGES sets how many there are; `make soak` sends a million.
func TestIntegrity(t *testing.T) {
	messages := 20_000
	if s := os.Getenv("ZRLMPI_INTEGRITY_MESSAGES"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil || n < 2 {
			t.Fatalf("ZRLMPI_INTEGRITY_MESSAGES=%q is not a number of messages", s)
		}
		messages = n
	}
	for _, tt := range []struct {
		name string
		net  byte
		faults
		listen func(rank int, m *rankmap.Map) (mpe.PacketTransport, error)
	}{
		{"udp", 81, faults{lose: 0.05, double: 0.05, delay: 0.05, flip: 0.01}, func(rank int, m *rankmap.Map) (mpe.PacketTransport, error) {
			return udp.Listen(udp.Config{Rank: rank, Map: m})
		}},
		// A corrupt packet costs the stream, and a new connection a back-off.
		{"tcp", 82, faults{lose: 0.05, double: 0.05, delay: 0.05, flip: 0.0001}, func(rank int, m *rankmap.Map) (mpe.PacketTransport, error) {
			return tcp.Listen(tcp.Config{
				Rank: rank, Map: m, Profile: func(int) protocol.Profile { return protocol.Extended },
				Backoff: func(int) time.Duration { return 10 * time.Millisecond },
			})
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, err := rankmap.New([]rankmap.Entry{
				{Rank: 0, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, tt.net, 1}), 27180), Kind: rankmap.Software},
				{Rank: 1, Addr: netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, tt.net, 2}), 27180), Kind: rankmap.Software},
			})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute+time.Duration(messages)*time.Millisecond)
			defer cancel()
			var engines [2]*mpe.Engine
			var nets [2]*impaired
			for rank := range engines {
				tr, err := tt.listen(rank, m)
				if err != nil {
					t.Fatal(err)
				}
				nets[rank] = impair(tr, uint64(rank)+1, tt.faults)
				cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
				x := &extended.Config{Seed: uint64(rank) + 1}
				if tr.Reliable() {
					x.MaxPayload, x.Window = protocol.MaxStreamPayload, 128
					// What is lost here is lost before it reaches the stream: without
					// the long time-outs for streams the test takes a tenth of the time.
					x.Timing = extended.DefaultTiming(false)
				}
				cfg.Peers[1-rank] = mpe.Peer{Transport: nets[rank], Extended: x}
				if engines[rank], err = mpe.New(cfg); err != nil {
					t.Fatal(err)
				}
				defer engines[rank].Close(ctx)
			}
			var all sync.WaitGroup
			for rank := range engines {
				all.Go(func() { integritySend(ctx, t, engines[rank], 1-rank, messages/2) })
				all.Go(func() { integrityRecv(ctx, t, engines[rank], 1-rank, messages/2) })
			}
			all.Wait()
			for rank, e := range engines {
				p := e.Snapshot().Peers[0]
				if e.Snapshot().Unexpected != 0 || p.Failed != 0 {
					t.Errorf("rank %d: %d messages are left, %d failed", rank, e.Snapshot().Unexpected, p.Failed)
				}
				nets[rank].mu.Lock()
				c := nets[rank].counts
				nets[rank].mu.Unlock()
				t.Logf("rank %d: %d packets, of which %d lost, %d duplicated, %d delayed, %d corrupt; %d retransmissions, %d dropped as duplicates, %d by checksum",
					rank, c.sent, c.lost, c.doubled, c.delayed, c.flipped, p.Extended.Retransmissions, p.Dropped[mpe.DropDuplicate], p.Dropped[mpe.DropChecksum])
				if c.lost == 0 || c.doubled == 0 || c.delayed == 0 || messages >= 100_000 && c.flipped == 0 {
					t.Errorf("rank %d: the network was not impaired: %+v", rank, c)
				}
			}
		})
	}
}

// integrityLength is that of a message: mostly small, seldom many packets.
func integrityLength(rng *rand.Rand) int {
	switch x := rng.IntN(1000); {
	case x < 900:
		return 12 + rng.IntN(500)
	case x < 990:
		return 12 + rng.IntN(20_000)
	}
	return 12 + rng.IntN(100_000)
}

// A message is its number, the checksum of the rest, and the rest.
func integritySend(ctx context.Context, t *testing.T, e *mpe.Engine, to, messages int) {
	rng := rand.New(rand.NewPCG(uint64(e.Rank()), 3))
	noise := make([]byte, 100_012)
	for i := range noise {
		noise[i] = byte(rng.Uint32())
	}
	const window = 32
	var ops [window]mpe.Op
	var bufs [window][]byte
	for i := range messages {
		slot := i % window
		if ops[slot] != nil {
			if _, err := ops[slot].Wait(ctx); err != nil {
				t.Errorf("rank %d: message %d: %v", e.Rank(), i-window, err)
				return
			}
		}
		n := integrityLength(rng)
		b := append(bufs[slot][:0], noise[:n]...)
		binary.LittleEndian.PutUint64(b, uint64(i))
		binary.LittleEndian.PutUint32(b[8:], crc32.ChecksumIEEE(b[12:]))
		bufs[slot] = b
		op, err := e.Start(mpe.Operation{Kind: mpe.OpSend, Peer: to, Tag: i % 3, Buf: b})
		if err != nil {
			t.Error(err)
			return
		}
		ops[slot] = op
	}
	for _, op := range ops {
		if op == nil {
			continue
		}
		if _, err := op.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
}

func integrityRecv(ctx context.Context, t *testing.T, e *mpe.Engine, from, messages int) {
	rng := rand.New(rand.NewPCG(uint64(from), 3))
	for range 100_012 {
		rng.Uint32()
	}
	const window = 16
	var ops [window]mpe.Op
	var bufs [window][]byte
	post := func(i int) error {
		if i >= messages {
			return nil
		}
		if bufs[i%window] == nil {
			bufs[i%window] = make([]byte, 100_012)
		}
		op, err := e.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: from, Tag: mpe.AnyTag, Buf: bufs[i%window]})
		ops[i%window] = op
		return err
	}
	check := func(i int) error {
		st, err := ops[i%window].Wait(ctx)
		if err != nil {
			return err
		}
		b, want := bufs[i%window][:st.Bytes], integrityLength(rng)
		switch {
		case len(b) != want || st.Tag != i%3:
			return fmt.Errorf("%d bytes with tag %d, want %d with tag %d", len(b), st.Tag, want, i%3)
		case binary.LittleEndian.Uint64(b) != uint64(i):
			return fmt.Errorf("it is message %d", binary.LittleEndian.Uint64(b))
		case binary.LittleEndian.Uint32(b[8:]) != crc32.ChecksumIEEE(b[12:]):
			return fmt.Errorf("its contents are corrupt")
		}
		return nil
	}
	for i := range window {
		if err := post(i); err != nil {
			t.Error(err)
			return
		}
	}
	for i := range messages {
		err := check(i)
		if err == nil {
			err = post(i + window)
		}
		if err != nil {
			t.Errorf("rank %d: message %d from rank %d: %v", e.Rank(), i, from, err)
			return
		}
	}
}
