package shm

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/internal/testkit/transporttest"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// engines returns the engines of two ranks, and what they share memory with.
func engines(t *testing.T, pipelined bool) (conns [2]*Conn, engines [2]*mpe.Engine) {
	t.Helper()
	m := transporttest.Map(t, 2)
	for rank := range engines {
		conns[rank] = listen(t, Config{Rank: rank, Map: m, Pipelined: pipelined})
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		x := &extended.Config{MaxPayload: MaxPayload, Seed: uint64(rank) + 1, HeaderChecksum: true}
		x.Window, x.WindowBytes = Window(DefaultRing(2))
		cfg.Peers[1-rank] = mpe.Peer{Extended: x, Transport: conns[rank]}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		engines[rank] = e
		t.Cleanup(func() {
			ended, cancel := context.WithCancel(context.Background())
			cancel()
			e.Close(ended)
		})
	}
	return conns, engines
}

// Engines that lose their link in the middle of messages, again and again, lose none
// of the messages, whether they fetch long payload or have it copied, or the peer's polling decides that.
func TestEnginesOverBrokenLinks(t *testing.T) {
	for _, tt := range []struct {
		name, singleCopy string
		pipelined        bool
	}{{"auto", "auto", false}, {"off", "off", false}, {"pipelined", "auto", true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvSingleCopy, tt.singleCopy)
			enginesOverBrokenLinks(t, tt.pipelined)
		})
	}
}

func enginesOverBrokenLinks(t *testing.T, pipelined bool) {
	conns, engines := engines(t, pipelined)
	const messages = 300
	length := func(i int) int { return i * 7919 % 200_000 }
	failed := make(chan error, 2)
	for rank, e := range engines {
		go func() {
			for i := range messages {
				if _, err := e.Send(t.Context(), 1-rank, bytes.Repeat([]byte{byte(i)}, length(i)), mpe.Options{}); err != nil {
					failed <- fmt.Errorf("rank %d, message %d: %w", rank, i, err)
					return
				}
			}
			failed <- nil
		}()
	}
	buf := make([]byte, 200_000)
	for i := range messages {
		if i%20 == 10 {
			p := conns[i/20%2].peers[1-i/20%2]
			p.mu.Lock()
			l := p.link
			p.mu.Unlock()
			if l != nil {
				l.conn.Close()
			}
		}
		for rank, e := range engines {
			st, err := e.Recv(t.Context(), 1-rank, buf, mpe.Options{})
			if err != nil || int(st.Bytes) != length(i) || bytes.Count(buf[:st.Bytes], []byte{byte(i)}) != length(i) {
				t.Fatalf("rank %d, message %d: %+v, %v", rank, i, st, err)
			}
		}
	}
	for range engines {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}
