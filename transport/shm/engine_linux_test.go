package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/transporttest"
)

// engines returns the engines of two ranks, and their Conns.
func engines(t *testing.T, pipelined bool) (conns [2]*Conn, engines [2]*mpe.Engine) {
	t.Helper()
	return enginesWith(t, pipelined, func(int, *mpe.Peer) {})
}

// enginesWith is like engines, but calls configure for the peer of each rank.
func enginesWith(t *testing.T, pipelined bool, configure func(rank int, p *mpe.Peer)) (conns [2]*Conn,
	engines [2]*mpe.Engine) {
	t.Helper()
	m := transporttest.Map(t, 2)
	for rank := range engines {
		conns[rank] = listen(t, Config{Rank: rank, Map: m, Pipelined: pipelined})
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2)}
		x := &extended.Config{MaxPayload: MaxPayload, Seed: uint64(rank) + 1, HeaderChecksum: true}
		x.Window, x.WindowBytes = Window(DefaultRing(2))
		cfg.Peers[1-rank] = mpe.Peer{Extended: x, Transport: conns[rank]}
		configure(rank, &cfg.Peers[1-rank])
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

// TestEnginesOverBrokenLinks checks that engines lose no message if their link breaks repeatedly in
// mid-message. Long payload is either fetched, or copied, or whichever is chosen because of the peer's polling
// and distance.
func TestEnginesOverBrokenLinks(t *testing.T) {
	for _, tt := range []struct {
		name, singleCopy string
		pipelined, moves bool
	}{{"auto", "auto", false, false}, {"off", "off", false, false}, {"pipelined", "auto", true, false},
		{"processors move", "auto", true, true}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(EnvSingleCopy, tt.singleCopy)
			enginesOverBrokenLinks(t, tt.pipelined, tt.moves)
		})
	}
}

func enginesOverBrokenLinks(t *testing.T, pipelined, moves bool) {
	conns, engines := engines(t, pipelined)
	const messages = 300
	// Every other message is short, and is sent without a request if possible.
	length := func(i int) int { return i * 7919 % []int{700_000, 100}[i%2] }
	failed := make(chan error, 2)
	for rank, e := range engines {
		go func() {
			for i := range messages {
				payload := bytes.Repeat([]byte{byte(i)}, length(i))
				if e.SendNow(1-rank, 0, 0, payload, protocol.Int, false) {
					continue
				}
				if _, err := e.Send(t.Context(), 1-rank, payload, mpe.Options{}); err != nil {
					failed <- fmt.Errorf("rank %d, message %d: %w", rank, i, err)
					return
				}
			}
			failed <- nil
		}()
	}
	buf := make([]byte, 700_000)
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
		if moves {
			conns[i%2].verdict(1-i%2, i%3 > 0)
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

// TestNotRungWhileItCalls checks that peers do not ring a rank for each packet while it makes calls between
// computations, even if the calls find their messages without a poll. The poller polls the rank at intervals,
// and watches it again after an interval without a call.
func TestNotRungWhileItCalls(t *testing.T) {
	conns, engines := engines(t, false)
	until := func(what func() bool) {
		for !what() {
			runtime.Gosched()
		}
	}
	watched := func() bool { return conns[1].inbox.doorbell.asleepFlag().Load() != 0 }
	send := func() {
		if _, err := engines[0].Send(t.Context(), 1, []byte{1}, mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		until(func() bool { return engines[1].Depths().Unexpected == 1 })
	}
	send()
	until(watched)
	if _, err := engines[1].Recv(t.Context(), 0, make([]byte, 1), mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	send()
	until(watched)
	if d := time.Since(begun); d < progress.MemoryInterval {
		t.Errorf("watched again after %v, less than the interval of %v", d, progress.MemoryInterval)
	}
}

// TestSendNow checks that SendNow either sends and counts the same as Send, or does nothing.
func TestSendNow(t *testing.T) {
	_, engines := engines(t, false)
	buf := make([]byte, 1<<16)
	data := []byte("12345")
	sendNow := func(peer, tag int, payload []byte) bool {
		return engines[0].SendNow(peer, tag, 7, payload, protocol.Int, false)
	}
	recv := func(want []byte) {
		t.Helper()
		st, err := engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: 3, Comm: 7})
		if err != nil || !bytes.Equal(buf[:st.Bytes], want) {
			t.Fatalf("%+v, %v", st, err)
		}
	}
	if sendNow(1, 3, data) {
		t.Error("a message was sent before there was a session")
	}
	if _, err := engines[0].Send(t.Context(), 1, data, mpe.Options{Tag: 3, Comm: 7}); err != nil {
		t.Fatal(err)
	}
	recv(data)
	for !sendNow(1, 3, data) { // the peer's answer has not arrived yet
		engines[0].PollOnce()
	}
	var sent state.PeerCounters
	engines[0].Counters(func(*state.RankCounters) {}, func(c *state.PeerCounters) { sent = *c })
	if sent.Sent != 2 || sent.SentBytes != 10 || sent.Failed != 0 || !sent.OldestSend.Waits ||
		sent.OldestSend.Elapsed < 0 {
		t.Errorf("%+v", sent)
	}
	for i := range data {
		data[i] = 0 // the buffer is the caller's again
	}
	recv([]byte("12345"))
	for _, other := range []struct {
		name      string
		peer, tag int
		payload   []byte
	}{
		{"long", 1, 0, make([]byte, 1<<20)},
		{"to itself", 0, 0, nil},
		{"to no rank", 2, 0, nil},
		{"to no rank, which is negative", -1, 0, nil},
		{"a negative tag", 1, -1, nil},
		{"a tag that is too large", 1, 1 << 31, nil},
	} {
		if sendNow(other.peer, other.tag, other.payload) {
			t.Errorf("%s: it was sent", other.name)
		}
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	engines[0].Close(ended)
	if sendNow(1, 3, data) {
		t.Error("a closed engine has sent")
	}
}

// TestSynchronousSendWaits checks that MPI_Ssend does not return before the message is received, even if
// messages can be sent without a request.
func TestSynchronousSendWaits(t *testing.T) {
	_, engines := engines(t, false)
	var worlds [2]*mpi.Comm
	for rank, e := range engines {
		var err error
		if worlds[rank], err = mpi.New(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := mpi.Send(t.Context(), worlds[0], []int32{1}, 1, 1); err != nil { // the session exists now
		t.Fatal(err)
	}
	if _, err := mpi.Recv(t.Context(), worlds[1], make([]int32, 1), 0, 1); err != nil {
		t.Fatal(err)
	}
	for !engines[0].SendNow(1, 2, 7, nil, protocol.Int, false) { // until messages can be sent this way
		engines[0].PollOnce()
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := mpi.Ssend(ended, worlds[0], []int32{1}, 1, 3); !errors.Is(err, context.Canceled) {
		t.Errorf("without a receive: %v", err)
	}
}
