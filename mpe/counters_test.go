package mpe_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// counters returns the counters of an engine, by peer.
func counters(e *mpe.Engine) (own state.RankCounters, peers map[int]state.PeerCounters) {
	peers = make(map[int]state.PeerCounters)
	e.Counters(func(c *state.RankCounters) { own = *c }, func(c *state.PeerCounters) { peers[c.Rank] = *c })
	return own, peers
}

// exchange sends a message from rank 0 to rank 1, which has posted its receive.
func exchange(t *testing.T, c *cluster, data []byte) {
	t.Helper()
	r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, len(data))})
	s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: data})
	for _, op := range []mpe.Op{s, r} {
		if _, err := op.Await(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestCountersOfAHandshake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.CPUPeer(), nil)
		defer c.close()
		const n = 1000 // words: 3 datagrams
		exchange(t, c, words(n, 1))
		exchange(t, c, words(1, 2))
		_, from := counters(c.engines[0])
		_, to := counters(c.engines[1])
		s, r := from[1], to[0]
		if s.Sent != 2 || s.SentBytes != 4*(n+1) || r.Received != 2 || r.ReceivedBytes != 4*(n+1) ||
			s.Received+r.Sent+s.Failed+r.Failed != 0 {
			t.Errorf("messages: %+v\n%+v", s, r)
		}
		const requests, header = 2, uint64(protocol.HeaderLen)
		want := [state.NumTypes]uint64{protocol.SendRequest: requests, protocol.Data: 4}
		bytes := [state.NumTypes]uint64{protocol.SendRequest: requests * header, protocol.Data: 2*header + 4*(n+1)}
		if s.PacketsOut != want || s.BytesOut != bytes || r.PacketsIn != want || r.BytesIn != bytes {
			t.Errorf("out: %v, %v; in: %v, %v; want %v, %v", s.PacketsOut, s.BytesOut, r.PacketsIn, r.BytesIn, want,
				bytes)
		}
		want = [state.NumTypes]uint64{protocol.ClearToSend: requests, protocol.Ack: requests}
		bytes = [state.NumTypes]uint64{protocol.ClearToSend: requests * header, protocol.Ack: requests * header}
		if r.PacketsOut != want || r.BytesOut != bytes || s.PacketsIn != want || s.BytesIn != bytes {
			t.Errorf("back: %v, %v; in: %v, %v; want %v, %v", r.PacketsOut, r.BytesOut, s.PacketsIn, s.BytesIn, want,
				bytes)
		}
	})
}

func TestCountersOfAnExtendedPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		exchange(t, c, pattern(300_000, 1)) // by rendezvous
		exchange(t, c, pattern(10, 2))      // eagerly
		time.Sleep(time.Second)             // everything is acknowledged
		_, from := counters(c.engines[0])
		_, to := counters(c.engines[1])
		s, r := from[1], to[0]
		if !s.Extended || s.Sent != 2 || s.SentBytes != 300_010 || r.Received != 2 || r.ReceivedBytes != 300_010 ||
			s.InFlight != 0 || s.InFlightPackets != 0 || s.RoundTrip <= 0 {
			t.Errorf("%+v\n%+v", s, r)
		}
		for typ := range state.NumTypes {
			if s.PacketsOut[typ] != r.PacketsIn[typ] || s.BytesOut[typ] != r.BytesIn[typ] ||
				r.PacketsOut[typ] != s.PacketsIn[typ] || r.BytesOut[typ] != s.BytesIn[typ] {
				t.Errorf("%v: %+v\n%+v", protocol.Type(typ), s, r)
			}
		}
		data := protocol.Data
		if got, want := s.BytesOut[data],
			300_010+s.PacketsOut[data]*protocol.ExtHeaderLen; got != want || s.PacketsOut[protocol.SendRequest] == 0 {
			t.Errorf("%d bytes of DATA, want %d; %v", got, want, s.PacketsOut)
		}
	})
}

// inBothWays runs a test with peers of both kinds, in simulated time.
func inBothWays(t *testing.T, ranks int, test func(t *testing.T, c *cluster, extended bool)) {
	t.Helper()
	for name, extended := range map[string]bool{"handshake": false, "extended": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c *cluster
				if extended {
					c = newExtended(t, ranks, nil)
				} else {
					c = newCluster(t, ranks, handshake.CPUPeer(), nil)
				}
				defer c.close()
				test(t, c, extended)
			})
		})
	}
}

func TestCountersOfWaits(t *testing.T) {
	inBothWays(t, 3, func(t *testing.T, c *cluster, extended bool) {
		e := c.engines[0]
		time.Sleep(time.Second)
		start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 2, Buf: make([]byte, 4)})
		time.Sleep(time.Second)
		start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: 2, Buf: make([]byte, 4)})
		start(t, e, mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Buf: make([]byte, 4)})
		for range 2 {
			start(t, e, mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 400_000)})
		}
		time.Sleep(2 * time.Second)
		own, peers := counters(e)
		if want := (state.OldestWait{Waits: true, Awaited: protocol.SendRequest,
			Elapsed: 2 * time.Second}); own.Posted != 3 || own.AnySource != want {
			t.Errorf("%+v", own)
		}
		if want := (state.OldestWait{Waits: true, Awaited: protocol.SendRequest,
			Elapsed: 3 * time.Second}); peers[2].OldestRecv != want || peers[2].OldestSend.Waits {
			t.Errorf("%+v, %+v", peers[2].OldestRecv, peers[2].OldestSend)
		}
		p := peers[1]
		if w := p.OldestSend; !w.Waits || w.Awaited != protocol.ClearToSend || w.Elapsed > 2*time.Second ||
			w.Elapsed < time.Second {
			t.Errorf("%+v", w)
		}
		if fmt.Sprint(p.QueuedSends, p.InFlight) != map[bool]string{false: "1 1", true: "0 2"}[extended] {
			t.Errorf("queued %d, in flight %d", p.QueuedSends, p.InFlight)
		}
		own, peers = counters(c.engines[1])
		if unexpected := own.Unexpected; unexpected != map[bool]int{false: 1, true: 2}[extended] ||
			peers[0].OldestRecv.Waits {
			t.Errorf("%d unexpected messages, %+v", unexpected, peers[0].OldestRecv)
		}

		c.net.SetHook(func(_, _ int, _ []byte) []time.Duration { return nil })
		start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 400_000)})
		ctx, cancel := context.WithCancel(t.Context())
		var probing sync.WaitGroup
		probing.Go(func() { _, _, _ = c.engines[1].Probe(ctx, mpe.Match{Source: 2, Tag: mpe.AnyTag}, true) })
		synctest.Wait()
		if own, peers = counters(c.engines[1]); own.Posted != 0 || own.Probes != 1 || peers[0].Receiving != 1 {
			t.Errorf("%+v\n%+v", own, peers[0])
		}
		cancel()
		probing.Wait()
	})
}

// TestSendBehindReturned checks that, in a snapshot, sends whose calls have returned do not hide a send whose call
// is waiting.
func TestSendBehindReturned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newExtended(t, 2, nil)
		defer c.close()
		exchange(t, c, make([]byte, 4))
		c.net.SetHook(func(_, _ int, _ []byte) []time.Duration { return nil })
		e := c.engines[0]
		for e.Snapshot().Peers[0].Extended.Queued == 0 { // until the window is full
			start(t, e, mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 4), Blocking: true})
			time.Sleep(time.Millisecond)
		}
		p := e.Snapshot().Peers[0]
		if w := p.Sending; w.Cancelled || w.State != handshake.Held || p.QueuedSends != p.Extended.Begun {
			t.Errorf("%+v, %d sends queued, %d begun", w, p.QueuedSends, p.Extended.Begun)
		}
	})
}

func TestCountersOfTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.CPUPeer(),
			func(hs *handshake.Config) { hs.Timing.ClearDeadline = 5 * time.Second })
		defer c.close()
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 4)})
		if _, err := s.Await(context.Background()); err == nil {
			t.Fatal("the message succeeded")
		}
		_, peers := counters(c.engines[0])
		if p := peers[1]; p.Unreachable != 1 || p.Failed != 1 || p.Sent != 0 || p.Retransmissions == 0 ||
			p.Retransmissions+1 != p.PacketsOut[protocol.SendRequest] {
			t.Errorf("%+v", p)
		}
	})
}

// TestSilentPeer checks that a peer that did not answer in time is silent until a packet from it arrives.
func TestSilentPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 2, handshake.CPUPeer(),
			func(hs *handshake.Config) { hs.Timing.ClearDeadline = 5 * time.Second })
		defer c.close()
		silent := func() bool {
			_, peers := counters(c.engines[0])
			return peers[1].Silent
		}
		if silent() {
			t.Error("a peer from which nothing is expected is silent")
		}
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, 4)})
		if _, err := s.Await(context.Background()); err == nil || !silent() {
			t.Errorf("after a timeout, %v, the peer is not silent", err)
		}
		time.Sleep(time.Hour)
		if !silent() {
			t.Error("the peer is not silent, and has sent nothing")
		}
		exchange(t, c, words(1, 1))
		if silent() {
			t.Error("the peer is silent after a message")
		}
	})
}

// TestStatusBeginsWhenPosted checks that the phases of a message, as reported to an Observer and a caller,
// begin when it is posted, whichever side had to wait for the other.
func TestStatusBeginsWhenPosted(t *testing.T) {
	inBothWays(t, 2, func(t *testing.T, c *cluster, _ bool) {
		const n = 400_000
		r := start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, n)})
		time.Sleep(time.Second)
		s := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, n)})
		second := start(t, c.engines[0], mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: make([]byte, n)})
		if _, err := s.Await(context.Background()); err != nil {
			t.Fatal(err)
		}
		st, err := r.Await(context.Background())
		if err != nil || st.Elapsed() < time.Second {
			t.Errorf("the receive took %v: %+v, %v", st.Elapsed(), st.Phases, err)
		}
		time.Sleep(2 * time.Second)
		r = start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, n)})
		if st, err = second.Await(context.Background()); err != nil || st.Elapsed() < 2*time.Second {
			t.Errorf("the second send took %v: %+v, %v", st.Elapsed(), st.Phases, err)
		}
		// It was posted when the message had already arrived.
		if st, err = r.Await(context.Background()); err != nil || st.Elapsed() > time.Second {
			t.Errorf("the second receive took %v: %+v, %v", st.Elapsed(), st.Phases, err)
		}
	})
}

// TestDepths checks that the length of each queue is the number of pending operations, with both kinds of peers.
func TestDepths(t *testing.T) {
	inBothWays(t, 2, func(t *testing.T, c *cluster, extended bool) {
		var ops []mpe.Op
		for range 3 {
			ops = append(ops, start(t, c.engines[0],
				mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Buf: make([]byte, 4)}))
		}
		time.Sleep(time.Second)
		if d := c.engines[0].Depths(); d != (state.Depths{Sends: 3}) {
			t.Errorf("the sender has %+v", d)
		}
		if d := c.engines[1].Depths(); d.Posted != 0 || d.Sends != 0 || extended && d.Unexpected != 3 {
			t.Errorf("the receiver has %+v", d)
		}
		for range 4 {
			ops = append(ops, start(t, c.engines[1], mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 4)}))
		}
		for _, op := range ops[:6] {
			if _, err := op.Await(context.Background()); err != nil {
				t.Fatal(err)
			}
		}
		if d, e := c.engines[0].Depths(),
			c.engines[1].Depths(); d != (state.Depths{}) || e != (state.Depths{Posted: 1}) {
			t.Errorf("at the end: %+v, %+v", d, e)
		}
	})
}
