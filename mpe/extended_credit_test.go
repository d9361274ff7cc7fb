package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// TestRefusedWithoutCredit checks that a rank's memory for unmatched messages is bounded by the credit that it
// grants. A send beyond this limit is refused. This happens in its call, after a wait for memory, or later if the
// caller cannot wait. Receives free memory.
func TestRefusedWithoutCredit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages, x.EagerBytes, x.EagerLimit = 8, 4000, 1000 })
		defer c.close()
		send := func(i int, noWait bool) (mpe.Op, error) {
			return c.engines[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: i, Buf: pattern(1000, uint64(i)),
				NoWait: noWait})
		}
		var sends []mpe.Op
		for i := range 8 {
			s, err := send(i, false)
			if err != nil {
				t.Fatal(err)
			}
			sends = append(sends, s)
		}
		begun := time.Now()
		var full *mpe.PeerFullError
		if _, err := send(8, false); !errors.Is(err, mpe.ErrFull) || !errors.As(err, &full) ||
			*full != (mpe.PeerFullError{Local: 0, Peer: 1}) {
			t.Errorf("the ninth message: %v", err)
		}
		waited := time.Since(begun)
		if waited < time.Second || waited > 3*time.Second { // the peer is asked every second
			t.Errorf("it waited for %v", waited)
		}
		if _, err := send(8, false); !errors.Is(err, mpe.ErrFull) || time.Since(begun) != waited {
			t.Errorf("another one: %v after %v", err, time.Since(begun))
		}
		late, err := send(8, true)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := late.Await(t.Context()); !errors.Is(err, mpe.ErrFull) ||
			time.Since(begun) < waited+time.Second || time.Since(begun) > waited+3*time.Second {
			t.Errorf("one whose caller cannot wait: %v after %v", err, time.Since(begun))
		}
		for i, s := range sends {
			if ended(s) != (i < 4) { // 4,000 bytes
				t.Errorf("send %d is done: %v", i, ended(s))
			}
		}
		if n := c.engines[1].Snapshot().Unexpected; n != 8 {
			t.Errorf("%d messages wait at the receiver, want 8", n)
		}
		// A send for which memory is freed while it waits is sent, whatever else is waiting.
		time.AfterFunc(500*time.Millisecond, func() {
			for i := range 2 {
				if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: i}); err != nil {
					t.Error(err)
				}
			}
		})
		if late, err = send(8, true); err != nil {
			t.Fatal(err)
		}
		time.Sleep(600 * time.Millisecond)
		if s, err := send(9, false); err != nil {
			t.Error(err)
		} else {
			sends = append(sends, late, s)
		}
		for i := 2; i < 10; i++ {
			buf := make([]byte, 1000)
			if _, err := c.engines[1].Recv(t.Context(), 0, buf, mpe.Options{Tag: i}); err != nil ||
				!bytes.Equal(buf, pattern(1000, uint64(i))) {
				t.Fatalf("message %d: %v", i, err)
			}
			if _, err := sends[i].Await(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestMemoryAfterRefusal checks that a send succeeds after a refusal if the program has learned from a message from
// the peer that there is memory again, even before an ACK from the peer states it.
func TestMemoryAfterRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 2 })
		defer c.close()
		send := func(tag int) error {
			_, err := c.engines[0].Start(mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: pattern(8, 1)})
			return err
		}
		if err := errors.Join(send(0), send(1)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := send(2); !errors.Is(err, mpe.ErrFull) {
				t.Fatal(err)
			}
		}
		c.net.SetHook(func(from, _ int, packet []byte) []time.Duration {
			if h, _, _ := protocol.ParseExtended(packet); from == 1 && h.Type == protocol.Ack {
				return []time.Duration{300 * time.Millisecond}
			}
			return []time.Duration{0}
		})
		time.Sleep(time.Millisecond)
		for tag := range 2 {
			if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 8), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		start(t, c.engines[1], mpe.Operation{Kind: mpe.OpSend, Peer: 0, Buf: pattern(8, 1)})
		if _, err := c.engines[0].Recv(t.Context(), 1, make([]byte, 8), mpe.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := send(2); err != nil {
			t.Error(err)
		}
	})
}

// TestSilenceIsNoRefusal checks that a peer's silence is not mistaken for a lack of memory: sends that wait for
// credit are not refused while the network is down, and are sent when it recovers.
func TestSilenceIsNoRefusal(t *testing.T) {
	for _, noWait := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 2 })
			defer c.close()
			send := func(tag int) mpe.Op {
				return start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: pattern(1000, 1),
					NoWait: noWait})
			}
			sends := []mpe.Op{send(0)}
			time.Sleep(2 * time.Second)
			c.net.SetHook(func(int, int, []byte) []time.Duration { return nil })
			sends = append(sends, send(1)) // uses the rest of the credit, and is lost
			receive := make(chan error, 1)
			time.AfterFunc(3*time.Second, func() {
				c.net.SetHook(nil)
				for tag := range 3 {
					_, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: tag})
					if err != nil {
						receive <- err
						return
					}
				}
				receive <- nil
			})
			sends = append(sends, send(2))
			for i, s := range sends {
				if _, err := s.Await(t.Context()); err != nil {
					t.Errorf("send %d, NoWait %v: %v", i, noWait, err)
				}
			}
			if err := <-receive; err != nil {
				t.Error(err)
			}
		})
	}
}

// TestCreditComesBack checks that credit is returned when a complete message is matched, and that a message
// that was complete earlier does not count as taken over.
func TestCreditComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.EagerBytes, x.EagerLimit = 4000, 1000 })
		defer c.close()
		for round := range 5 {
			for i := range 4 {
				if !eagerly(t, c, i) {
					t.Fatalf("round %d: message %d waits for credit", round, i)
				}
			}
			for i := range 4 {
				if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 1000), mpe.Options{Tag: i}); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(time.Second)
		}
		if p := c.engines[1].Snapshot().Peers[0]; p.TakenOver != 0 || p.TakenOverBytes != 0 || p.Received != 20 {
			t.Errorf("%+v", p)
		}
	})
}

func eagerly(t *testing.T, c *cluster, tag int) bool {
	op := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: make([]byte, 1000)})
	time.Sleep(time.Second)
	return ended(op)
}

// TestSelfMessageLimit checks that the number of messages from a rank to itself is limited, and that they do not use
// the memory that is reserved for senders with credit.
func TestSelfMessageLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := memnet.New(2)
		c := &cluster{t: t, net: net}
		defer func() { c.close() }()
		for rank := range 2 {
			cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, 2), Limits: match.Limits{Unexpected: 4, Posted: 3}}
			cfg.Peers[1-rank] = mpe.Peer{Transport: net.Transport(rank),
				Extended: &extended.Config{Seed: uint64(rank) + 1, Messages: 10}}
			e, err := mpe.New(cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.engines = append(c.engines, e)
		}
		e := c.engines[0]
		for i := range 5 {
			_, err := e.Isend(0, make([]byte, 8), mpe.Options{Tag: i})
			if errors.Is(err, mpe.ErrFull) != (i == 4) {
				t.Errorf("message %d to itself: %v", i, err)
			}
		}
		// A message that a receive waits for is not limited.
		if _, err := e.Irecv(0, make([]byte, 8), mpe.Options{Tag: 50}); err != nil {
			t.Error(err)
		}
		if _, err := e.Isend(0, make([]byte, 8), mpe.Options{Tag: 50}); err != nil {
			t.Errorf("a message to itself whose receive is posted: %v", err)
		}
		for i := range 10 {
			if _, err := c.engines[1].Send(t.Context(), 0, make([]byte, 8), mpe.Options{Tag: 100 + i}); err != nil {
				t.Error(err)
			}
		}
		time.Sleep(time.Second)
		for i := range 10 {
			if _, err := e.Recv(t.Context(), 1, make([]byte, 8), mpe.Options{Tag: 100 + i}); err != nil {
				t.Error(err)
			}
		}
		for i := range 4 {
			_, err := e.Irecv(1, make([]byte, 8), mpe.Options{Tag: i})
			if errors.Is(err, mpe.ErrFull) != (i == 3) {
				t.Errorf("receive %d: %v", i, err)
			}
		}
	})
}

// TestScarceSendIsReported checks that a send that was announced because of scarce credit is reported as waiting
// for that reason, even if the peer has granted more credit since.
func TestScarceSendIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, func(x *extended.Config) { x.Messages = 64 })
		defer c.close()
		scarce := func() bool { return c.engines[0].Snapshot().Peers[0].Extended.CreditScarce }
		ctx, stop := context.WithCancel(t.Context())
		sent, ended := 0, make(chan bool)
		go func() {
			defer close(ended)
			for {
				if _, err := c.engines[0].Send(ctx, 1, []byte("four"), mpe.Options{Tag: sent}); err != nil {
					return
				}
				sent++
			}
		}()
		time.Sleep(time.Second)
		synctest.Wait()
		if sent < 50 || !scarce() {
			t.Fatalf("after %d of 64 messages credit is not scarce", sent)
		}
		for tag := range 41 { // not the waiting one
			if _, err := c.engines[1].Recv(t.Context(), 0, make([]byte, 4), mpe.Options{Tag: tag}); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if s := c.engines[0].Snapshot().Peers[0].Extended; s.MessageCredit < 32 || !s.CreditScarce {
			t.Errorf("credit of %d, scarce: %v", s.MessageCredit, s.CreditScarce)
		}
		stop()
		<-ended
	})
}
