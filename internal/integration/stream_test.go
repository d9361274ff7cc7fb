package integration_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
	"github.com/zrlmpi/zrlmpid/transport/tcp"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// TestLongMessagesBothWaysOverTCP sends more data between two ranks than all buffers between them hold, in both
// directions at once. A rank must not stop reading while it is writing.
func TestLongMessagesBothWaysOverTCP(t *testing.T) {
	const words = 8 << 20
	entries := []rankmap.Entry{
		{Rank: 0, Addr: netip.MustParseAddrPort("127.0.78.1:27180"), Kind: rankmap.Software},
		{Rank: 1, Addr: netip.MustParseAddrPort("127.0.78.2:27180"), Kind: rankmap.Software},
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
			Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}), MaxWords: words,
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
	for range 5 { // the requests must cross, which is likely in each of several rounds
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
				if err != nil || st.Phases.Retransmissions > 1 { // for the request before the connection
					t.Errorf("rank %d sends: %v, %d packets repeated", rank, err, st.Phases.Retransmissions)
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

// TestSendToDeadStreamEnds sends a long message to a peer over TCP that clears it and fails in the middle of DATA: the
// peer dies, closes the connection, or stops reading so that the window fills up. The send must end with an error, and
// the engine must remain usable meanwhile.
func TestSendToDeadStreamEnds(t *testing.T) {
	const write, ack = 300 * time.Millisecond, 500 * time.Millisecond
	for name, test := range map[string]struct {
		bytes        int
		closes, dies bool
	}{
		"short, dies":  {bytes: 60_000, dies: true},
		"long, dies":   {bytes: 64 << 10, dies: true},
		"long, closes": {bytes: 64 << 10, closes: true},
		"long, stalls": {bytes: 64 << 10},
		// More bytes than the buffers of both systems hold.
		"window full, dies":   {bytes: 64 << 20, dies: true},
		"window full, closes": {bytes: 64 << 20, closes: true},
		"window full, stalls": {bytes: 64 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			m := transporttest.Map(t, 2)
			conn, err := tcp.Listen(tcp.Config{Rank: 0, Map: m, WriteTimeout: write})
			if err != nil {
				t.Fatal(err)
			}
			timing := handshake.DefaultTiming(handshake.PeerRules{})
			timing.AckDeadline = ack
			e, err := mpe.New(mpe.Config{Peers: []mpe.Peer{{}, {Transport: conn, Handshake: handshake.Config{
				Shape: protocol.CPUShape(), Timing: timing, MaxWords: 1 << 25,
			}}}})
			if err != nil {
				t.Fatal(err)
			}
			ln, err := net.ListenTCP("tcp4", net.TCPAddrFromAddrPort(m.Addr(1)))
			if err != nil {
				t.Fatal(err)
			}
			var peer sync.WaitGroup
			peer.Go(func() { clearAndFail(t, ln, test.closes, test.dies) })

			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r, err := e.Isend(1, make([]byte, test.bytes), mpe.Options{})
			if err != nil {
				t.Fatal(err)
			}
			var timeout *handshake.TimeoutError
			if _, err := r.Wait(ctx); !errors.As(err, &timeout) || timeout.Wait.State != handshake.WaitAck {
				t.Errorf("the send ended with %v", err)
			}
			if err := e.Heartbeat(ctx); err != nil {
				t.Error(err)
			}
			ln.Close()
			peer.Wait()
			if err := e.Close(ctx); err != nil {
				t.Error(err)
			}
		})
	}
}

// clearAndFail clears the message on the first connection. It then stops reading, or closes the connection after
// reading a little, or dies and accepts no more connections. It sends no answer on later connections, and returns when
// the listener is closed.
func clearAndFail(t *testing.T, ln *net.TCPListener, closes, dies bool) {
	for first := true; ; first = false {
		conn, err := ln.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		if !first {
			continue
		}
		b := make([]byte, 1000)
		if _, err := io.ReadFull(conn, b[:protocol.HeaderLen]); err != nil {
			t.Error(err)
			return
		}
		h, _ := protocol.CloudFPGA.Parse(b[:protocol.HeaderLen])
		h.Src, h.Dst, h.Call, h.Type = 1, 0, h.Call.Counterpart(), protocol.ClearToSend
		protocol.CloudFPGA.Put(b[:protocol.HeaderLen], h)
		if _, err := conn.Write(b[:protocol.HeaderLen]); err != nil {
			t.Error(err)
			return
		}
		if _, err := io.ReadFull(conn, b); err != nil { // DATA has started
			t.Error(err)
			return
		}
		if dies {
			ln.Close()
		}
		if closes || dies {
			conn.Close()
		}
	}
}
