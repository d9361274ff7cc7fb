package handshake_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// headerLike returns a DATA payload that is itself a valid ZRLMPI packet of the Pair, as in a program that forwards
// recorded traffic.
func headerLike(t protocol.Type) []byte {
	return protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 0, Src: 1, Call: sInt, Type: t})
}

func TestPayloadThatLooksLikeAPacket(t *testing.T) {
	// 1384 + 32 bytes: the second datagram has exactly the length of a header.
	for _, typ := range []protocol.Type{sreq, dat} {
		data := append(pattern(346, 1), headerLike(typ)...)
		b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
		op := b.postRecv(354)
		b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, data).sends(clr, ack)
		if !bytes.Equal(op.data, data) {
			t.Fatalf("payload that resembles %v was accepted as a packet", typ)
		}
	}
	// A full continuation datagram that begins with the header of its message.
	h := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 0, Src: 1, Call: sInt, Type: dat, Size: 800})
	data := append(pattern(346, 1), append(h, pattern(800-346-8, 2)...)...)
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op := b.postRecv(800)
	b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, data).sends(clr, ack)
	if !bytes.Equal(op.data, data) {
		t.Fatal("payload that begins with the message's own header was accepted as a retransmission of it")
	}
}

func TestPacketInMidMessage(t *testing.T) {
	data := pattern(1000, 1)
	all := cut(0, protocol.Header{Dst: 0, Src: 1, Size: 1000, Call: sInt, Type: dat}, data, protocol.CPUShape())
	for _, typ := range []protocol.Type{sreq, clr, ack} {
		for place := 1; place < len(all); place++ {
			b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
			op := b.postRecv(1000)
			b.at(0).gets(sreq, sInt, nil)
			for i, d := range all {
				if i == place {
					call := rInt
					if typ == sreq {
						call = sInt
					}
					b.gets(typ, call, nil)
				}
				b.raw(d)
			}
			b.sends(clr, ack)
			if !bytes.Equal(op.data, data) {
				t.Fatalf("%v before datagram %d corrupted the message", typ, place)
			}
		}
	}
}

func TestFragmentsAreCountedInBytes(t *testing.T) {
	for _, words := range []int{347, 348, 1055, 1056} {
		data := pattern(words, 1)
		h := protocol.Header{Dst: 0, Src: 1, Size: uint32(words), Call: sInt, Type: dat}
		for _, shape := range []protocol.Shape{protocol.CPUShape(), protocol.FPGAShape(true),
			protocol.FPGAShape(false)} {
			b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
			op := b.postRecv(words)
			b.at(0).gets(sreq, sInt, nil)
			for _, d := range cut(0, h, data, shape) {
				b.raw(d)
			}
			b.sends(clr, ack)
			if !bytes.Equal(op.data, data) {
				t.Fatalf("%d words cut by %+v", words, shape)
			}
		}
	}
}

// TestLostDatagramIsNoMalformedPacket: if a datagram of a message is lost, the others are dropped for matching reasons,
// and the retransmission is received.
func TestLostDatagramIsNoMalformedPacket(t *testing.T) {
	for _, words := range []int{347, 348, 701, 1000, 1055, 1056} {
		data := pattern(words, 1)
		h := protocol.Header{Dst: 0, Src: 1, Size: uint32(words), Call: sInt, Type: dat}
		for _, shape := range []protocol.Shape{protocol.CPUShape(), protocol.FPGAShape(true),
			protocol.FPGAShape(false)} {
			datagrams := cut(0, h, data, shape)
			for lost := range len(datagrams) {
				b := newBench(t, hostTo(1, handshake.CPUPeer()))
				op := b.postRecv(words)
				b.at(0).gets(sreq, sInt, nil)
				for i, d := range datagrams {
					if i != lost {
						b.raw(d)
					}
				}
				for _, r := range []handshake.Reason{handshake.ReasonShort, handshake.ReasonStartMark,
					handshake.ReasonLength} {
					if b.drops[r] > 0 {
						t.Errorf("%d words cut by %+v without datagram %d: dropped %v", words, shape, lost, b.drops)
					}
				}
				b.at(200 * ms)
				for _, d := range datagrams {
					b.raw(d)
				}
				if !bytes.Equal(op.data, data) {
					t.Errorf("%d words cut by %+v without datagram %d, and retransmitted: %v", words, shape, lost,
						op.err)
				}
			}
		}
	}
}

func TestBadDataDoesNotHarmTheMessage(t *testing.T) {
	bad := func(size uint32, n int) []byte {
		h := protocol.Header{Dst: 0, Src: 1, Size: size, Call: sInt, Type: dat}
		return append(protocol.CloudFPGA.Append(nil, h), make([]byte, n)...)
	}
	for name, c := range map[string]struct {
		b    []byte
		want handshake.Reason
	}{
		"size 0xFFFFFFFF":         {bad(0xFFFFFFFF, 1384), handshake.ReasonSize},
		"header without payload":  {bad(100, 0), handshake.ReasonLength},
		"first datagram is short": {bad(1000, 1380), handshake.ReasonLength},
		"payload too long":        {bad(1, 12), handshake.ReasonLength},
		"wrong datatype": {append(protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: 1, Size: 1, Call: sFlt, Type: dat}), 0, 0, 0, 0), handshake.ReasonDatatype},
		"receive call": {append(protocol.CloudFPGA.Append(nil,
			protocol.Header{Src: 1, Size: 1, Call: rInt, Type: dat}), 0, 0, 0, 0), handshake.ReasonDirection},
		"unexpected payload": {make([]byte, 1416), handshake.ReasonUnexpectedPayload},
		"unexpected tail":    {make([]byte, 4), handshake.ReasonUnexpectedPayload},
		"odd bytes":          {make([]byte, 5), handshake.ReasonShort},
	} {
		b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
		op := b.postRecv(1000)
		b.at(0).gets(sreq, sInt, nil).raw(c.b)
		if b.drops[c.want] != 1 {
			t.Errorf("%s: dropped %v, want one for %v", name, b.drops, c.want)
		}
		b.gets(dat, sInt, pattern(1000, 1)).sends(clr, ack)
		if op.err != nil || !bytes.Equal(op.data, pattern(1000, 1)) {
			t.Errorf("%s: the message that followed is corrupt: %v", name, op.err)
		}
	}
}

// At the beginning of a wait, its description does not mention the duration.
func TestDescribe(t *testing.T) {
	held := handshake.Wait{State: handshake.Held, Remote: 1, Since: time.Second}
	receiving := handshake.Wait{State: handshake.Receiving, Remote: 2, For: protocol.Data, Since: time.Second, Words: 2,
		Got: 4}
	for _, tt := range []struct {
		wait handshake.Wait
		now  handshake.Instant
		want string
	}{
		{held, time.Second, "rank 0 holds a send to rank 1 back, behind a message from it"},
		{held, 3 * time.Second, "rank 0 has held a send to rank 1 back for 2s, behind a message from it"},
		{receiving, time.Second, "rank 0 waits for DATA from rank 2 (4 of 8 bytes received)"},
		{receiving, 2 * time.Minute, "rank 0 has waited 1m59s for DATA from rank 2 (4 of 8 bytes received)"},
	} {
		if got := tt.wait.Describe(tt.now); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

func TestDatatypes(t *testing.T) {
	// INT never matches FLOAT at an FPGA, and the wait shows this.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1).dt = protocol.Float
	b.at(0).gets(sreq, sInt, nil).sends()
	w, _ := b.pair.RecvWait()
	if text := w.Describe(time.Second); !strings.Contains(text,
		"rank 1 asks to send with SEND_INT, which the posted receive does not match") {
		t.Error(text)
	}
	b.gets(sreq, sFlt, nil).gets(dat, sFlt, pattern(1, 1)).sends(clr, ack)

	// A receive of any datatype accepts either one, and answers with the same.
	c := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	c.postRecv(1).any = true
	c.at(0).gets(sreq, sFlt, nil)
	if h, _ := protocol.CloudFPGA.Decode(c.out()[0]); h.Call != rFlt {
		t.Errorf("cleared with %v", h.Call)
	}

	// Upstream's CPU library uses INT calls for floats.
	d := newBench(t, hostTo(1, handshake.CPUPeer()))
	d.postRecv(1).dt = protocol.Float
	d.at(0).gets(sreq, sInt, nil)
	if h, _ := protocol.CloudFPGA.Decode(d.out()[0]); h.Call != rInt {
		t.Errorf("cleared with %v", h.Call)
	}
	d.gets(dat, sInt, pattern(1, 1)).sends(ack)
	s := d.postSend(pattern(1, 2))
	s.dt = protocol.Float
	d.at(1 * ms)
	if h, _ := protocol.CloudFPGA.Decode(d.out()[0]); h.Call != sInt {
		t.Errorf("asked a CPU rank with %v, which it does not know", h.Call)
	}
	d.gets(clr, rInt, nil).gets(ack, rInt, nil)
	if !s.done || s.err != nil {
		t.Fatal("a float to a CPU rank did not end")
	}
}

func TestTagsOfV09(t *testing.T) {
	cfg := hostTo(1, handshake.SoftwarePeer())
	cfg.Profile = protocol.V09
	b := newBench(t, cfg)
	acts, err := b.pair.Recv(0, handshake.RecvOp{Words: 1, Tag: 7}, nil)
	if err != nil || len(acts) != 0 {
		t.Fatalf("%v, %v", acts, err)
	}
	in := func(tag uint8, typ protocol.Type, payload ...byte) []handshake.Action {
		h := protocol.Header{Dst: 0, Src: 1, Call: sInt, Type: typ, Tag: tag, Size: uint32(len(payload) / 4)}
		return b.pair.Datagram(0, append(protocol.V09.Append(nil, h), payload...), nil)
	}
	if acts = in(8, sreq); acts[0].Kind != handshake.Drop {
		t.Fatalf("tag 8 matched: %v", acts)
	}
	if acts = in(7, sreq); acts[0].Header.Type != clr || acts[0].Header.Tag != 7 {
		t.Fatalf("tag 7 was answered by %v", acts[0].Header)
	}
	if acts = in(7, dat, 1, 2, 3, 4); acts[len(acts)-1].Kind != handshake.RecvDone ||
		acts[len(acts)-1].Header.Tag != 7 {
		t.Fatalf("%v", acts)
	}
}

func TestDeadlinesNameTheWait(t *testing.T) {
	cfg := hostTo(3, handshake.FPGAPeer(3))
	cfg.Timing.ClearDeadline = 30 * time.Second
	for _, c := range []struct {
		name string
		do   func(b *bench) *simOp
		want string
	}{
		{"clear", func(b *bench) *simOp { return b.postSend(pattern(1, 1)) },
			"rank 0 waited 30s in WAIT_CLEAR for CLEAR_TO_SEND from rank 3 (retransmitted 11 times): rank 3 has not " +
				"cleared the message, or packets between the two ranks are lost"},
		{"data", func(b *bench) *simOp { op := b.postRecv(1); b.at(0).gets(sreq, sInt, nil); return op },
			"rank 0 waited 10s in WAIT_DATA for DATA from rank 3 (retransmitted 2 times): it asked to send, was " +
				"cleared, and then sent nothing. If the SEND_REQUEST was a late duplicate, rank 3 is in no send; if " +
				"it is an FPGA and does not go on, restart its role"},
		{"ack of a fragmented message", func(b *bench) *simOp {
			op := b.postSend(pattern(1000, 1))
			b.at(0).gets(clr, rInt, nil)
			return op
		}, "rank 3 did not acknowledge 1000 words in 3 datagrams within 6.88s and did not ask for them again. Unless " +
			"it was restarted, it may be in the middle of them: an FPGA that lost a datagram stores a retransmission " +
			"as data, so nothing is retransmitted. Restart the FPGA's role, then run \"zrlctl reset 3 --from 0\"; to avoid it, " +
			"send messages of up to 346 words, which are retransmitted safely, pace more, or set on_partial: retransmit"},
	} {
		b := newBench(t, cfg)
		op := c.do(b)
		b.at(time.Minute)
		if op.err == nil || op.err.Error() != c.want {
			t.Errorf("%s:\n got %v\nwant %s", c.name, op.err, c.want)
		}
	}
}

// TestFirstDeadline: a send fails if the peer has never sent a packet, and waits like any other once it has.
func TestFirstDeadline(t *testing.T) {
	for _, tt := range []struct {
		name string
		// before and meanwhile are the peer's packets before the send, and while it waits.
		before, meanwhile func(b *bench)
		ends              bool
	}{
		{"silent", func(*bench) {}, func(*bench) {}, true},
		{"heard before", func(b *bench) { b.at(0).gets(sreq, sInt, nil) }, func(*bench) {}, false},
		{"heard meanwhile", func(*bench) {}, func(b *bench) { b.gets(sreq, sInt, nil) }, false},
		{"a packet to another rank", func(*bench) {}, func(b *bench) {
			b.raw(protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 7, Src: 3, Call: sInt, Type: sreq}))
		}, true},
	} {
		cfg := hostTo(3, handshake.FPGAPeer(3))
		cfg.Timing.FirstDeadline = 30 * time.Second
		b := newBench(t, cfg)
		tt.before(b)
		op := b.postSend(pattern(1, 1))
		tt.meanwhile(b.at(29 * time.Second))
		b.at(time.Hour)
		const want = "rank 0 waited 30s in WAIT_CLEAR for CLEAR_TO_SEND from rank 3 (retransmitted 11 times), from " +
			"which no packet was ever received: " +
			"rank 3 has not cleared the message, or packets between the two ranks are lost"
		switch {
		case !tt.ends && op.err != nil:
			t.Errorf("%s: %v", tt.name, op.err)
		case tt.ends && (op.err == nil || op.err.Error() != want):
			t.Errorf("%s:\n got %v\nwant %s", tt.name, op.err, want)
		}
	}
}

// TestFirstDeadlineIsNoExtension: an earlier deadline of every send remains in effect.
func TestFirstDeadlineIsNoExtension(t *testing.T) {
	cfg := hostTo(3, handshake.FPGAPeer(3))
	cfg.Timing.FirstDeadline, cfg.Timing.ClearDeadline = 30*time.Second, time.Second
	b := newBench(t, cfg)
	op := b.postSend(pattern(1, 1))
	b.at(2 * time.Second)
	if e, ok := errors.AsType[*handshake.TimeoutError](op.err); !ok || e.Elapsed != time.Second || e.Unheard {
		t.Errorf("%v", op.err)
	}
}

func TestDeployedTimeouts(t *testing.T) {
	// SEND_REQUEST and DATA of upstream's CPU library and of the MPE of rank 1, as seen on the wire.
	at := func(cfg handshake.Config, cleared bool) []time.Duration {
		b := newBench(t, cfg)
		b.postSend(pattern(1, 1))
		b.at(0)
		if cleared {
			b.gets(clr, rInt, nil)
		}
		b.out()
		var times []time.Duration
		for {
			next, ok := b.next()
			if !ok || next > 5*time.Second {
				return times
			}
			b.at(next)
			if len(b.out()) > 0 {
				times = append(times, next)
			}
		}
	}
	us := func(ns ...float64) (d []time.Duration) {
		for _, n := range ns {
			d = append(d, time.Duration(n*float64(ms)))
		}
		return d
	}
	cpuNode := handshake.Config{Local: 0, Remote: 1, Timing: handshake.DeployedCPU()}
	for _, c := range []struct {
		name      string
		got, want []time.Duration
	}{
		{"cpu request", at(cpuNode, false), us(100, 1200, 3300)},
		{"cpu data", at(cpuNode, true), us(100, 1200, 3300)},
		{"mpe request", at(standIn(1, 0), false), us(112.5, 1225, 3337.5)},
		{"mpe data", at(standIn(1, 0), true), us(225, 1450, 3675)},
	} {
		if len(c.got) != len(c.want) {
			t.Fatalf("%s: retransmits at %v, want %v", c.name, c.got, c.want)
		}
		for i := range c.got {
			if c.got[i] != c.want[i] {
				t.Errorf("%s: retransmits at %v, want %v", c.name, c.got, c.want)
				break
			}
		}
	}
}

func TestCancel(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	var acts []handshake.Action
	acts, _ = b.pair.Send(0, handshake.SendOp{ID: 1, Words: 1}, acts)
	if acts, ok := b.pair.CancelSend(0, 1, acts[:0]); !ok || len(acts) != 0 || !b.pair.SendIdle() {
		t.Fatal("a send that waits for CLEAR_TO_SEND was not canceled")
	}
	// The FPGA answers the canceled request, and waits. The next send uses the answer: it would wait forever for
	// another one.
	b.gets(clr, rInt, nil)
	b.postSend(pattern(1, 1))
	b.at(1*ms).sends(sreq, dat)
	if _, ok := b.pair.CancelSend(b.now, 0, nil); ok {
		t.Fatal("a send whose DATA is out was canceled")
	}
	c := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	c.postRecv(1)
	c.at(0)
	if !c.pair.CancelRecv(0) || !c.pair.RecvIdle() {
		t.Fatal("a receive that was not requested was not canceled")
	}
	c.postRecv(1)
	c.at(1*ms).gets(sreq, sInt, nil)
	if c.pair.CancelRecv(1) {
		t.Fatal("a receive that has been cleared was canceled")
	}
}

func TestBusyAndTooLong(t *testing.T) {
	cfg := hostTo(1, handshake.CPUPeer())
	cfg.MaxWords = 10
	p := handshake.New(cfg)
	if _, err := p.Send(0, handshake.SendOp{Words: 11}, nil); !errors.Is(err, handshake.ErrTooLong) {
		t.Error(err)
	}
	cfg.PeerWords = 7
	small := handshake.New(cfg)
	if _, err := small.Send(0, handshake.SendOp{Words: 8}, nil); !errors.Is(err, handshake.ErrTooLong) ||
		!strings.Contains(err.Error(), "the kernel of rank 1 takes 7 at most (kernel_options.words)") {
		t.Error(err)
	}
	if _, err := small.Send(0, handshake.SendOp{Words: 7}, nil); err != nil {
		t.Error(err)
	}
	p.Send(0, handshake.SendOp{Words: 10}, nil)
	if _, err := p.Send(0, handshake.SendOp{Words: 1}, nil); !errors.Is(err, handshake.ErrBusy) {
		t.Error(err)
	}
	p.Recv(0, handshake.RecvOp{Words: 1}, nil)
	if _, err := p.Recv(0, handshake.RecvOp{Words: 1}, nil); !errors.Is(err, handshake.ErrBusy) {
		t.Error(err)
	}
}

func TestReconnect(t *testing.T) {
	// On a reliable transport nothing is retransmitted by a timer, and all data in flight is after a reconnection.
	cfg := hostTo(1, handshake.SoftwarePeer())
	cfg.Reliable = true
	send := func() *bench {
		b := newBench(t, cfg)
		b.postSend(pattern(1000, 1))
		b.at(time.Hour)
		return b
	}
	b := send()
	b.sends(sreq)
	b.rank.acts = b.pair.Reconnected(b.now, nil)
	b.do(b.now)
	b.sends(sreq)
	b.gets(clr, rInt, nil).sends(dat, 0, 0)
	b.rank.acts = b.pair.Reconnected(b.now, nil)
	b.do(b.now)
	b.sends(dat, 0, 0)

	// Both sides have asked, and packets that the peer has not read are lost with the connection.
	c := send()
	c.sends(sreq)
	c.postRecv(1000)
	c.gets(sreq, sInt, nil).sends(clr)
	c.rank.acts = c.pair.Reconnected(c.now, nil)
	c.do(c.now)
	c.sends(sreq, clr)
	c.gets(clr, rInt, nil).sends(dat, 0, 0)

	r := newBench(t, cfg)
	op := r.postRecv(1000)
	h := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Size: 1000, Call: sInt, Type: dat})
	data := pattern(1000, 1)
	feed := func(b []byte, header bool) {
		if header {
			r.rank.acts = r.pair.Header(r.now, b, nil)
		} else {
			r.rank.acts = r.pair.Payload(r.now, b, nil)
		}
		r.do(r.now)
	}
	r.at(0).gets(sreq, sInt, nil)
	feed(h, true)
	feed(data[:1234], false)
	r.sends(clr)
	r.rank.acts = r.pair.Reconnected(r.now, nil)
	r.do(r.now)
	r.sends(clr)
	feed(h, true)
	for i := 0; i < len(data); i += 1000 {
		feed(data[i:i+1000], false)
	}
	r.sends(ack)
	if !bytes.Equal(op.data, data) {
		t.Fatal("corrupt")
	}
	// The ACK was lost with the connection: the whole message is retransmitted.
	feed(h, true)
	feed(data, false)
	r.sends(ack)
}

func TestDelayedCopyIsUnmasked(t *testing.T) {
	// A copy of the first message arrives after the second one was cleared. No rank can detect that at this time; it is
	// detected when the second message arrives.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1)
	second := b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1))
	b.gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1)).sends(clr, ack, clr, ack)
	if !second.done || b.notes[handshake.DeliveredDuplicate] != 0 {
		t.Fatal("the copy was distinguished, which the wire does not allow")
	}
	b.at(1*ms).gets(dat, sInt, pattern(1, 2)).sends()
	if b.notes[handshake.DeliveredDuplicate] != 1 {
		t.Fatal("the corruption was not noticed")
	}
	// Two messages of the same bytes are not a corruption.
	c := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	for range 3 {
		c.postRecv(1)
		c.at(c.now).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1)).sends(clr, ack)
	}
	if c.notes[handshake.DeliveredDuplicate] != 0 {
		t.Fatal("a valid message was accepted as a copy")
	}
}

func TestSameBytesAsTheLastMessageAreNotARetransmissionOnceThePeerHasAsked(t *testing.T) {
	// The peer continues with a message of the same bytes, and sends it for a stale CLEAR_TO_SEND before our receive is
	// posted: an ACK would confirm to the peer that the message was received.
	b := newBench(t, hostTo(1, handshake.CPUPeer()))
	b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1)).sends(clr, ack)
	b.at(200*ms).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1, 1)).sends()
	b.dropped(handshake.ReasonUnsolicited, 1)
	second := b.postRecv(1)
	b.at(250 * ms).sends(clr)
	b.gets(dat, sInt, pattern(1, 1)).sends(ack)
	if !second.done || second.err != nil {
		t.Fatal("the second message did not arrive")
	}
}

func TestLateClearAfterASendThatFailed(t *testing.T) {
	// The FPGA lost our DATA, and asks for it after our send timed out. It does not ask again, so the next send must
	// use this.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op := b.postSend(pattern(1, 1))
	b.at(0).gets(clr, rInt, nil)
	b.at(11 * time.Second)
	if op.err == nil {
		t.Fatal("the send has not failed")
	}
	b.out()
	b.gets(clr, rInt, nil)
	b.postSend(pattern(1, 2))
	b.at(b.now).sends(sreq, dat)
}
