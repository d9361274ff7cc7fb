package integration_test

import (
	"bytes"
	"context"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/rankmap"
	"github.com/zrlmpi/zrlmpid/tcp"
)

// TestLongMessagesBothWaysOverTCP has two ranks send each other more than all
// buffers between them hold, at the same time. Neither may stop reading because
// it is writing.
func TestLongMessagesBothWaysOverTCP(t *testing.T) {
	const words = 8 << 20
	entries := []rankmap.Entry{
		{Rank: 0, Addr: netip.MustParseAddrPort("127.0.78.1:27180"), Kind: rankmap.Software, Local: true},
		{Rank: 1, Addr: netip.MustParseAddrPort("127.0.78.2:27180"), Kind: rankmap.Software, Local: true},
	}
	m, err := rankmap.New(entries)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var engines [2]*mpe.Engine
	for rank := range engines {
		conn, err := tcp.Listen(tcp.Config{Rank: rank, Map: m, MaxWords: words})
		if err != nil {
			t.Fatal(err)
		}
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		cfg.Peers[1-rank] = mpe.Peer{Transport: conn, Handshake: handshake.Config{
			Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.Rules{}), MaxWords: words,
		}}
		if engines[rank], err = mpe.New(cfg); err != nil {
			t.Fatal(err)
		}
		defer engines[rank].Close(ctx)
	}
	var mine [2][]byte
	for rank := range mine {
		mine[rank] = bytes.Repeat([]byte{byte(rank), 2, 3, 4, 5, 6, 7}, words*4/7+1)[:words*4]
	}
	for range 5 { // the requests must cross, which is likely each time
		var all sync.WaitGroup
		start := make(chan struct{})
		for rank, e := range engines {
			buf := make([]byte, words*4)
			recv, err := e.Irecv(1-rank, buf, mpe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				<-start
				st, err := e.Send(ctx, 1-rank, mine[rank], mpe.Options{})
				if err != nil || st.Phases.Repeats > 1 { // one for the request before the connection
					t.Errorf("rank %d sends: %v, %d packets repeated", rank, err, st.Phases.Repeats)
				}
			})
			all.Go(func() {
				if st, err := recv.Wait(ctx); err != nil || st.Words != words || !bytes.Equal(buf, mine[1-rank]) {
					t.Errorf("rank %d receives: %d words, %v", rank, st.Words, err)
				}
			})
		}
		close(start)
		all.Wait()
	}
}
