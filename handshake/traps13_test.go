package handshake_test

import (
	"bytes"
	"errors"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/handshake/mpemodel"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Traps 13 to 17: how deployed nodes handle late and retransmitted packets.

func TestTrap13RetransmissionToACPUReceiver(t *testing.T) {
	// Each datagram of DATA is lost in turn, while neither side is stalled: the receiver starts over, asks again, and
	// gets the message.
	for nth := 1; nth <= 3; nth++ {
		host, dev := newRank(hostToCPU()), newCPU(1, 0)
		got := [2]func() result{dev.party().recv(1000), dev.party().recv(5)}
		ops := [2]*simOp{host.postSend(pattern(1000, 1)), host.postSend(pattern(5, 2))}
		newWorld(host, dev, one(0, nth, nil)).run(time.Minute)
		for i, op := range ops {
			if !op.done || op.err != nil || !bytes.Equal(got[i]().data, op.buf) {
				t.Errorf("datagram %d lost, message %d: %v", nth, i, op.err)
			}
		}
		if n := host.notes[handshake.Retransmitted]; n != 1 {
			t.Errorf("datagram %d lost: retransmitted %d times", nth, n)
		}
	}
	// Nothing is retransmitted until it asks, however long that takes.
	b := newBench(t, hostToCPU())
	op := b.postSend(pattern(1000, 1))
	b.at(0).gets(clr, rInt, nil).sends(sreq, dat, 0, 0)
	b.at(9 * time.Second).sends()
	b.at(11 * time.Second).sends()
	var pe *handshake.PartialError
	if !errors.As(op.err, &pe) || pe.FPGA || pe.Doubtful {
		t.Fatalf("got %v", op.err)
	}
	// An unacknowledged message does not cause later ones to be refused.
	next := b.postSend(pattern(1, 2))
	if b.at(12 * time.Second); next.err != nil {
		t.Fatal(next.err)
	}
	// A CLEAR_TO_SEND that may have crossed with DATA that took long to send does not count.
	cfg := hostToCPU()
	cfg.MaxWords = 1000
	p := handshake.New(cfg)
	clear := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Call: rInt, Type: clr})
	var acts []handshake.Action
	if acts, err := p.Send(0, handshake.SendOp{Words: 1000}, nil); err != nil || len(acts) != 1 {
		t.Fatal(acts, err)
	}
	again := func(at time.Duration) bool {
		p.Tick(at, nil) // nothing was received in between
		p.Datagram(at, clear, nil)
		acts = p.Tick(at, nil)
		return len(acts) > 0 && acts[0].Kind == handshake.TransmitData
	}
	p.Datagram(0, clear, nil)
	if again(95 * ms) {
		t.Error("asked while DATA is being sent")
	}
	p.DataSent(160 * ms)
	if again(200 * ms) {
		t.Error("asked 40 ms after DATA")
	}
	if !again(1300 * ms) {
		t.Errorf("DATA is not retransmitted: %v", acts)
	}
	// A CLEAR_TO_SEND may be for the next receive if SEND_REQUEST was sent twice: the ACK was lost, and the receiver
	// continued.
	b = newBench(t, hostToCPU())
	op = b.postSend(pattern(1000, 1))
	b.at(1020*ms).gets(clr, rInt, nil).sends(sreq, sreq, dat, 0, 0)
	b.at(1300*ms).gets(clr, rInt, nil).sends()
	b.at(time.Minute).sends()
	if !errors.As(op.err, &pe) || !pe.Doubtful {
		t.Fatalf("got %v", op.err)
	}
}

func TestTrap05NoRequestTooMany(t *testing.T) {
	// The receiver comes late and has received SEND_REQUEST twice. The second one announces the next message as well,
	// and the third message is asked for again.
	host, dev := newRank(hostToCPU()), newCPU(1, 0)
	var ops [3]*simOp
	var got [3]func() result
	for i := range ops {
		ops[i], got[i] = host.postSend(pattern(400, uint32(i))), dev.party().recv(400)
	}
	dev.ops[0].after = 1050 * ms
	w := newWorld(host, dev, nil)
	w.run(time.Minute)
	for i, op := range ops {
		if op.err != nil || !bytes.Equal(got[i]().data, op.buf) {
			t.Errorf("message %d: %v", i, op.err)
		}
	}
	requests := 0
	for _, s := range w.log {
		if h, d := protocol.CloudFPGA.Parse(s.b); s.from == 0 && d.OK() && h.Type == sreq {
			requests++
		}
	}
	if requests != 3 || ops[2].ph.Ack > 1060*ms {
		t.Errorf("%d SEND_REQUESTs for three messages, the last acknowledged at %v", requests, ops[2].ph.Ack)
	}
	// If the peer has kept none after all, one is sent after the first timeout.
	b := newBench(t, hostToCPU())
	b.postSend(pattern(1, 1))
	b.at(1050*ms).gets(clr, rInt, nil).gets(ack, rInt, nil).sends(sreq, sreq, dat)
	b.postSend(pattern(1, 2))
	b.at(2049 * ms).sends()
	b.at(2051 * ms).sends(sreq)
	b.gets(clr, rInt, nil).sends(dat)
	b.gets(ack, rInt, nil)
	b.postSend(pattern(1, 3))
	b.at(2052 * ms).sends(sreq) // that CLEAR_TO_SEND was prompt, so it answered this SEND_REQUEST
}

func TestTrap14LateRequest(t *testing.T) {
	const words = 5
	run := func(t *testing.T, late time.Duration, before func(*rank, *fpga), f fault) (*rank, *fpga, *world) {
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		before(host, dev)
		w := newWorld(host, dev, f)
		w.run(late)
		return host, dev, w
	}
	// The FPGA echoes twice. A copy of its SEND_REQUEST arrives 125 ms late, when the host sends and receives at the
	// same time.
	out := [2][]byte{pattern(words, 1), pattern(words, 2)}
	var sends, recvs [2]*simOp
	host, dev, _ := run(t, time.Minute, func(host *rank, dev *fpga) {
		for i := range out {
			sends[i], recvs[i] = host.postSend(out[i]), host.postRecv(words)
			dev.party().recv(words)
			dev.add(&fpgaOp{send: true, words: make([]uint32, words)})
		}
		sends[1].after, recvs[1].after = 130*ms, 120*ms
	}, one(1, 2, []time.Duration{0, 125 * ms})) // CLEAR_TO_SEND, ACK, SEND_REQUEST
	for i := range out {
		if s, r := sends[i], recvs[i]; !s.done || s.err != nil || !r.done || r.err != nil {
			t.Errorf("message %d: send %v %v, receive %v %v", i, s.done, s.err, r.done, r.err)
		}
		if got := dev.ops[2*i].data; !bytes.Equal(got, out[i]) {
			t.Errorf("message %d: the FPGA has %x", i, got)
		}
	}
	if host.notes[handshake.RequestWasDuplicate] != 1 {
		t.Errorf("noted %v", host.notes)
	}
	if why, stuck := dev.m.Wedged(); stuck {
		t.Error(why)
	}
	// A receive without any other operation fails with an error that describes the possible cause, and requests of the
	// FPGA are served.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(sreq, sInt, nil) // the copy
	r := b.postRecv(1)
	b.at(1 * ms).sends(clr)
	s := b.postSend(pattern(1, 1))
	b.at(2 * ms).sends()
	b.at(10050*ms).sends(sreq, clr, clr, sreq)
	var te *handshake.TimeoutError
	if !errors.As(r.err, &te) || te.State != handshake.WaitData {
		t.Fatalf("receive: %v", r.err)
	}
	if b.gets(clr, rInt, nil).gets(ack, rInt, nil); s.err != nil || !s.done {
		t.Fatalf("send: %v %v", s.done, s.err)
	}
	// A single CLEAR_TO_SEND in the meantime counts if no other packet follows: an FPGA does not ask forever.
	b = newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	s = b.postSend(pattern(1, 1))
	r = b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).sends(sreq, clr)
	b.at(50*ms).gets(clr, rInt, nil).sends()
	if _, since, ok := b.pair.UnansweredClear(); !ok || since != 50*ms {
		t.Errorf("the peer's receive is not known of: %v %v", since, ok)
	}
	b.at(11*time.Second).sends(clr, clr, sreq, dat)
	if !errors.Is(r.err, handshake.ErrTimeout) {
		t.Errorf("receive: %v", r.err)
	}
	if b.gets(ack, rInt, nil); s.err != nil || !s.done {
		t.Errorf("send: %v %v", s.done, s.err)
	}
	// So does a single one of a CPU rank.
	b = newBench(t, hostToCPU())
	s = b.postSend(pattern(1, 1))
	r = b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).gets(clr, rInt, nil).sends(sreq, clr)
	b.at(11*time.Second).sends(clr, clr, dat)
	if b.gets(ack, rInt, nil); s.err != nil || !s.done || r.err == nil {
		t.Errorf("send: %v %v, receive: %v", s.done, s.err, r.err)
	}
	// Two that come together are one and its duplicate.
	b = newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postSend(pattern(1, 1))
	b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).sends(sreq, clr)
	b.gets(clr, rInt, nil).at(5*ms).gets(clr, rInt, nil).sends()
	// But not if its message was received.
	b = newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postSend(pattern(1, 1))
	b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).gets(clr, rInt, nil).sends(sreq, clr)
	b.at(1*ms).gets(dat, sInt, pattern(1, 2)).sends(ack, sreq)
	// A deferred one is dropped when the FPGA has received since.
	b = newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(sreq, sInt, nil)
	b.at(1 * ms).postSend(pattern(1, 1))
	b.at(2*ms).gets(clr, rInt, nil).gets(ack, rInt, nil).sends(sreq, dat)
	b.postRecv(1)
	b.at(3 * ms).sends()
}

func TestTrap15EmptyMessageFromAnFPGA(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op := b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).sends(clr)
	h := protocol.Header{Src: 1, Call: sInt, Type: dat}
	b.raw(append(protocol.CloudFPGA.Append(nil, h), 0xde, 0xad, 0xbe, 0xef, 1, 2, 3, 4)).sends(ack)
	if !op.done || op.err != nil || op.words != 0 || !bytes.Equal(op.buf, make([]byte, 4)) {
		t.Fatalf("%v, %d words, %v, %x", op.done, op.words, op.err, op.buf)
	}
	// More than a line is not a message of 0 words.
	b.postRecv(1)
	b.at(1*ms).gets(sreq, sInt, nil).sends(clr)
	b.raw(append(protocol.CloudFPGA.Append(nil, h), make([]byte, 9)...)).sends()
	b.dropped(handshake.ReasonLength, 1)
}

func TestTrap16LateClear(t *testing.T) {
	// The first CLEAR_TO_SEND of the FPGA arrives 170 ms late, after its second one, and a continuation datagram is
	// lost.
	host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
	got := dev.party().recv(1001)
	op := host.postSend(pattern(1001, 1))
	newWorld(host, dev, func(from, n int, b []byte) []time.Duration {
		switch {
		case from == 1 && n == 0:
			return []time.Duration{170 * ms}
		case from == 0 && len(b) == 1416 && b[0] != 0x96:
			return nil
		}
		return onTime
	}).run(time.Minute)
	// SEND_REQUEST
	if !errors.Is(op.err, handshake.ErrPartial) || got().done || host.notes[handshake.Retransmitted] != 1 {
		t.Fatalf("%v; the FPGA has a message: %v; %v", op.err, got().done, host.notes)
	}
	// One that comes later than the FPGA's timeout, less a tenth, was sent by the FPGA.
	first := mpemodelTimeout(1)
	for _, at := range []time.Duration{first*9/10 - ms, first * 9 / 10} {
		b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
		b.postSend(pattern(1001, 1))
		b.at(0).gets(clr, rInt, nil).sends(sreq, dat, 0, 0)
		b.at(at).gets(clr, rInt, nil)
		b.at(at + ms)
		if at < first*9/10 {
			b.sends()
		} else {
			b.sends(dat, 0, 0)
		}
	}
}

// mpemodelTimeout returns the time after which the model of the FPGA asks again.
func mpemodelTimeout(rank int) time.Duration {
	m := mpemodel.New(mpemodel.Config{Rank: rank, Peers: []int{0}})
	if err := m.Recv(0, 0, 1, protocol.Int); err != nil {
		panic(err)
	}
	m.Datagram(0, 0, protocol.CloudFPGA.Append(nil, protocol.Header{Dst: uint32(rank), Call: sInt, Type: sreq}))
	at, _ := m.NextEvent()
	return at
}

func TestTrap17FirstDatagramTwiceToACPUReceiver(t *testing.T) {
	// The network copies the datagram, and the receiver's memory is overrun. We cannot prevent that, but must not
	// conclude that the message was received.
	host, dev := newRank(hostToCPU()), newCPU(1, 0)
	dev.party().recv(1000)
	op := host.postSend(pattern(1000, 1))
	newWorld(host, dev, func(from, n int, b []byte) []time.Duration {
		if from == 0 && n == 1 {
			return []time.Duration{0, latency}
		}
		if from == 0 && n == 3 {
			return []time.Duration{2 * latency}
		}
		return onTime
	}).run(time.Minute)
	if _, crashed := dev.m.Crashed(); !crashed || !errors.Is(op.err, handshake.ErrPartial) {
		t.Fatalf("crashed %v; send: %v", crashed, op.err)
	}
}

// The kernel of a stand-in may send and receive at the same time. To a host, which treats the stand-in as an FPGA, its
// SEND_REQUEST would mean that it has received the host's message. If the host has dropped the SEND_REQUEST (P17), the
// stand-in retransmits it, however often it did before.
func TestTrap14StandInThatSendsAndReceives(t *testing.T) {
	b := newBench(t, standIn(1, 0))
	b.postRecv(1)
	b.at(0).gets(sreq, sInt, nil).sends(clr)
	b.postSend(pattern(1, 1))
	b.at(112 * ms).sends() // DATA was lost
	b.at(113 * ms).sends(clr)

	b = newBench(t, standIn(1, 0))
	b.postSend(pattern(1, 1))
	b.at(10*time.Second).sends(sreq, sreq, sreq, sreq) // all retransmissions
	b.postRecv(1)
	b.at(11*time.Second).gets(sreq, sInt, nil).sends(clr)
	b.gets(dat, sInt, pattern(1, 2)).sends(ack)
	b.at(11200 * ms).sends(sreq)
}
