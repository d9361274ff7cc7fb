package shm

import (
	"bytes"
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// dataPackets returns the number of DATA packets received by rank 1.
func dataPackets(e *mpe.Engine) (n uint64) {
	e.PeerCounters(0, func(c *state.PeerCounters) { n = c.PacketsIn[protocol.Data] })
	return n
}

// sendSync posts a synchronous send from rank 0.
func sendSync(t *testing.T, e *mpe.Engine, data []byte, tag int) mpe.Op {
	t.Helper()
	op, err := e.Start(mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: data, Tag: tag})
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// readable returns engines that can read each other's memory.
func readable(t *testing.T) (conns [2]*Conn, es [2]*mpe.Engine) {
	t.Helper()
	exposing(t)
	conns, es = engines(t, false)
	// The link becomes known with the first message.
	word := make([]byte, 4)
	s := sendSync(t, es[0], word, 0)
	if _, err := es[1].Recv(t.Context(), 0, word, mpe.Options{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Await(t.Context()); err != nil {
		t.Fatal(err)
	}
	return conns, es
}

// TestAdvertisedMessages checks that announced messages are copied without DATA: with the receive posted before
// the message, after it, or after a probe, and with a buffer that is large enough or too small.
func TestAdvertisedMessages(t *testing.T) {
	_, engines := readable(t)
	before := dataPackets(engines[1])
	for _, size := range []int{1, 1000, 100_000, maxSingleCopy} {
		for _, room := range []int{size, size + 1, size / 2} {
			for _, when := range []string{"before", "after", "after a probe"} {
				data, buf := bytes.Repeat([]byte{byte(size + 5)}, size), make([]byte, room)
				var recv *mpe.Request
				post := func() {
					var err error
					if recv, err = engines[1].Irecv(0, buf, mpe.Options{}); err != nil {
						t.Fatal(err)
					}
				}
				if when == "before" {
					post()
				}
				send := sendSync(t, engines[0], data, 0)
				if when == "after a probe" {
					if st, ok, err := engines[1].Probe(t.Context(), mpe.Match{Source: 0}, true); !ok || err != nil ||
						st.Bytes != int64(size) {
						t.Fatalf("%+v, %v, %v", st, ok, err)
					}
					if _, ended, _ := send.Test(); ended {
						t.Errorf("%d bytes: a probe ends a synchronous send", size)
					}
				}
				if when != "before" {
					post()
				}
				st, err := recv.Wait(t.Context())
				var truncated *mpe.TruncatedError
				if errors.As(err, &truncated) != (room < size) || err != nil && room >= size {
					t.Errorf("%d bytes for %d, %s: %v", size, room, when, err)
				}
				if truncated != nil && (truncated.Posted != int64(room) || truncated.Sent != int64(size)) {
					t.Errorf("%d bytes for %d, %s: %+v", size, room, when, truncated)
				}
				if n := min(size, room); st.Bytes != int64(size) || bytes.Count(buf, data[:1]) != n {
					t.Errorf("%d bytes for %d, %s: %+v", size, room, when, st)
				}
				if st, err := send.Await(t.Context()); err != nil || st.Bytes != int64(size) {
					t.Errorf("%d bytes for %d, %s: the send: %+v, %v", size, room, when, st, err)
				}
			}
		}
	}
	if n := dataPackets(engines[1]) - before; n != 0 {
		t.Errorf("%d packets of DATA arrived", n)
	}
}

// TestMoreThanIsAdvertised checks that messages are requested if there are more than slots, or if they are too
// long to be advertised, and that the sender can cancel all of them.
func TestMoreThanIsAdvertised(t *testing.T) {
	conns, engines := readable(t)
	for _, canceled := range []bool{false, true} {
		before := dataPackets(engines[1])
		const messages, size = advertSlots + 10, 20_000
		var sends []mpe.Op
		for i := range messages {
			n := size
			if i == 3 {
				n = maxSingleCopy + 1
			}
			sends = append(sends, sendSync(t, engines[0], bytes.Repeat([]byte{byte(i + 1)}, n), i))
		}
		// Once the last message has been announced, all have been.
		if _, _, err := engines[1].Probe(t.Context(), mpe.Match{Source: 0, Tag: messages - 1}, true); err != nil {
			t.Fatal(err)
		}
		for i, s := range sends {
			if canceled {
				s.Cancel()
				if _, err := s.Await(t.Context()); !errors.Is(err, mpe.ErrCancelled) {
					t.Errorf("message %d: %v", i, err)
				}
				continue
			}
			buf := make([]byte, maxSingleCopy+1)
			st, err := engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: i})
			if err != nil || int64(bytes.Count(buf, []byte{byte(i + 1)})) != st.Bytes || st.Bytes < size {
				t.Errorf("message %d: %+v, %v", i, st, err)
			}
			if _, err := s.Await(t.Context()); err != nil {
				t.Errorf("message %d: %v", i, err)
			}
		}
		asked := dataPackets(engines[1]) - before
		// The longest message has two packets, and an advertised message has none.
		if want := map[bool]uint64{false: 2 + messages - advertSlots - 1, true: 0}[canceled]; asked != want {
			t.Errorf("%d packets of DATA arrived, want %d; canceled: %v", asked, want, canceled)
		}
		if used := conns[0].advertsTo(1); used != 0 {
			t.Errorf("slots %#x are taken", used)
		}
	}
}

// TestAdvertOfAnEndedLink checks that a message that was advertised over one link is requested over the next link if
// the first one ended.
func TestAdvertOfAnEndedLink(t *testing.T) {
	conns, engines := readable(t)
	before := dataPackets(engines[1])
	const size = 100_000
	var sends []mpe.Op
	for i := range 2 {
		sends = append(sends, sendSync(t, engines[0], bytes.Repeat([]byte{byte(i + 1)}, size), i))
		if _, _, err := engines[1].Probe(t.Context(), mpe.Match{Source: 0, Tag: i}, true); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			// It has been acknowledged once another message has been answered.
			word := make([]byte, 4)
			go engines[1].Send(t.Context(), 0, make([]byte, 4), mpe.Options{})
			if _, err := engines[0].Recv(t.Context(), 1, word, mpe.Options{}); err != nil {
				t.Fatal(err)
			}
			old := [2]*link{conns[0].linkTo(1), conns[1].linkTo(0)}
			old[0].conn.Close()
			for rank, l := range old {
				for now := l; now == l || now == nil; now = conns[rank].linkTo(1 - rank) {
					runtime.Gosched()
				}
			}
		}
	}
	for i, s := range sends {
		buf := make([]byte, size)
		if _, err := engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: i}); err != nil ||
			bytes.Count(buf, []byte{byte(i + 1)}) != size {
			t.Errorf("message %d: %v", i, err)
		}
		if _, err := s.Await(t.Context()); err != nil {
			t.Errorf("message %d: %v", i, err)
		}
	}
	if dataPackets(engines[1]) == before {
		t.Error("no packet of DATA arrived")
	}
}

// linkTo returns the link to a rank, or nil.
func (c *Conn) linkTo(rank int) *link {
	p := c.peers[rank]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link
}

// advertsTo returns the slots in use for adverts to a rank.
func (c *Conn) advertsTo(rank int) uint64 {
	p := c.peers[rank]
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link.out.adverts.usedSlots
}

// TestAdvertInvalidated checks that a rank that cancels an unmatched send gets its buffer back immediately, and that
// the peer does not see later writes to the buffer.
func TestAdvertInvalidated(t *testing.T) {
	_, engines := readable(t)
	const size = 100_000
	gone, arrived := 0, 0
	for i := range 20 {
		data := bytes.Repeat([]byte{1}, size)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() {
			_, err := engines[0].Send(ctx, 1, data, mpe.Options{Tag: i})
			clear(data)
			ended <- err
		}()
		if _, _, err := engines[1].Probe(t.Context(), mpe.Match{Source: 0, Tag: i}, true); err != nil {
			t.Fatal(err)
		}
		cancel()
		if i%2 == 0 {
			<-ended
		}
		// Either the message is canceled, or the cancel came too late.
		buf := make([]byte, size)
		recv, err := engines[1].Irecv(0, buf, mpe.Options{Tag: i})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 1 {
			<-ended
		}
		last := sendSync(t, engines[0], nil, 1000)
		if _, err := engines[1].Recv(t.Context(), 0, nil, mpe.Options{Tag: 1000}); err != nil {
			t.Fatal(err)
		}
		if _, err := last.Await(t.Context()); err != nil {
			t.Fatal(err)
		}
		recv.Cancel()
		_, err = recv.Wait(t.Context())
		switch {
		case errors.Is(err, mpe.ErrCancelled):
			gone++
		case err != nil || bytes.Count(buf, []byte{1}) != size:
			t.Fatalf("message %d: %v, %d bytes of %d", i, err, bytes.Count(buf, []byte{1}), size)
		default:
			arrived++
		}
	}
	t.Logf("%d were canceled, %d arrived", gone, arrived)
}
