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
	var all sync.WaitGroup
	for rank, e := range engines {
		mine := bytes.Repeat([]byte{byte(rank), 2, 3, 4, 5, 6, 7}, words*4/7+1)[:words*4]
		theirs := bytes.Repeat([]byte{byte(1 - rank), 2, 3, 4, 5, 6, 7}, words*4/7+1)[:words*4]
		buf := make([]byte, words*4)
		recv, err := e.Irecv(1-rank, buf, mpe.Options{})
		if err != nil {
			t.Fatal(err)
		}
		all.Go(func() {
			if _, err := e.Send(ctx, 1-rank, mine, mpe.Options{}); err != nil {
				t.Errorf("rank %d sends: %v", rank, err)
			}
		})
		all.Go(func() {
			if st, err := recv.Wait(ctx); err != nil || st.Words != words || !bytes.Equal(buf, theirs) {
				t.Errorf("rank %d receives: %d words, %v", rank, st.Words, err)
			}
		})
	}
	all.Wait()
}
