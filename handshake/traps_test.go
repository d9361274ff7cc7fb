package handshake_test

import (
	"bytes"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// One test per trap of the deployed nodes, numbered as in docs/ZRLMPI_protocol.md. If a trap is a flaw of the FPGA, the
// model of its MPE shows the flaw, and how our side copes with it.

const ms = time.Millisecond

// bench is a single rank; the test plays its peer.
type bench struct {
	t *testing.T
	*rank
	now time.Duration
}

func newBench(t *testing.T, cfg handshake.Config) *bench {
	return &bench{t: t, rank: newRank(cfg)}
}

// at advances the clock, and handles the timeouts on the way.
func (b *bench) at(now time.Duration) *bench {
	for {
		next, ok := b.next()
		if !ok || next > now {
			break
		}
		b.now = max(b.now, next)
		b.tick(b.now)
	}
	b.now = now
	b.start(now)
	return b
}

// gets passes a handshake packet or DATA from the peer to the rank.
func (b *bench) gets(typ protocol.Type, call protocol.Call, payload []byte) *bench {
	h := protocol.Header{Dst: b.cfg.Local, Src: b.cfg.Remote, Call: call, Type: typ, Size: uint32(len(payload) / 4)}
	for _, d := range cut(b.cfg.Profile, h, payload, protocol.CPUShape()) {
		b.datagram(b.now, d)
	}
	b.start(b.now)
	return b
}

func (b *bench) raw(d []byte) *bench {
	b.datagram(b.now, d)
	return b
}

// sends checks the types of the packets sent since the last call; continuation datagrams count as 0.
func (b *bench) sends(want ...protocol.Type) {
	b.t.Helper()
	var got []protocol.Type
	for _, d := range b.out() {
		h, defect := b.cfg.Profile.Parse(d)
		if !defect.OK() {
			h.Type = 0
		}
		got = append(got, h.Type)
	}
	if len(got) != len(want) {
		b.t.Fatalf("at %v: sent %v, want %v", b.now, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			b.t.Fatalf("at %v: sent %v, want %v", b.now, got, want)
		}
	}
}

func (b *bench) dropped(r handshake.Reason, n int) {
	b.t.Helper()
	if b.drops[r] != n {
		b.t.Fatalf("at %v: dropped %d for %v, want %d (all: %v)", b.now, b.drops[r], r, n, b.drops)
	}
}

const (
	sreq = protocol.SendRequest
	clr  = protocol.ClearToSend
	dat  = protocol.Data
	ack  = protocol.Ack
	sInt = protocol.SendInt
	rInt = protocol.RecvInt
	sFlt = protocol.SendFloat
	rFlt = protocol.RecvFloat
)

func TestTrap01OneDeferredHeader(t *testing.T) {
	// Three SEND_REQUESTs before the receive are one message.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(sreq, sInt, nil).at(100*ms).gets(sreq, sInt, nil).at(200*ms).gets(sreq, sInt, nil)
	b.sends()
	op := b.postRecv(1)
	b.at(250 * ms).sends(clr)
	b.gets(dat, sInt, pattern(1, 1)).sends(ack)
	b.postRecv(1)
	b.at(400 * ms).sends()
	if !op.done || op.err != nil {
		t.Fatalf("the message did not arrive: %v", op.err)
	}
	// Any newer header overwrites the deferred one of a stand-in, as in the FPGA.
	s := newBench(t, standIn(1, 0))
	s.gets(sreq, sInt, nil).gets(ack, rInt, nil)
	s.postRecv(1)
	s.at(10 * ms).sends()
	s.gets(sreq, sInt, nil).sends(clr)
}

func TestTrap02NothingUnsolicitedToAnFPGA(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	data := pattern(3, 1)
	b.postRecv(3)
	b.at(0).gets(sreq, sInt, nil).sends(clr)
	// A duplicate of the SEND_REQUEST, made by the network, does not cause a second CLEAR_TO_SEND.
	b.at(5*ms).gets(sreq, sInt, nil).sends()
	b.gets(dat, sInt, data).sends(ack)
	// Nor does a duplicate of DATA cause a second ACK. Only one that comes after the FPGA's own ACK timeout, 225 ms
	// for rank 1, does.
	b.at(10*ms).gets(dat, sInt, data).sends()
	b.at(150*ms).gets(dat, sInt, data).sends()
	b.at(240*ms).gets(dat, sInt, data).sends(ack)
	b.at(300*ms).gets(dat, sInt, data).sends()
	b.dropped(handshake.ReasonDuplicate, 4)
	// A packet that matches no pending operation is not answered.
	b.gets(clr, rInt, nil).gets(ack, rInt, nil).sends()
	b.dropped(handshake.ReasonStale, 2)
}

func TestTrap03CrossingRequests(t *testing.T) {
	for _, order := range []string{"fpga_first", "host_first", "together"} {
		for _, words := range []int{1, 347, 1000} {
			host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
			// The FPGA's program sends and then receives; the host posts both at the same time.
			fromDev, toDev := pattern(words, 1), pattern(words, 2)
			sent := dev.party().send(fromDev)
			got := dev.party().recv(words)
			s, r := host.postSend(toDev), host.postRecv(words)
			switch order {
			case "fpga_first":
				s.after = 10 * ms
				r.after = 10 * ms
			case "host_first":
				dev.ops[0].after = 10 * ms
			}
			w := newWorld(host, dev, nil)
			w.run(time.Minute)
			if !s.done || s.err != nil || !r.done || !bytes.Equal(r.data, fromDev) {
				t.Fatalf("%s, %d words: send %v %v, receive %v %v", order, words, s.done, s.err, r.done, r.err)
			}
			if !sent().done || !bytes.Equal(got().data, toDev) {
				t.Fatalf("%s, %d words: the FPGA got other data", order, words)
			}
			if order != "fpga_first" && host.notes[handshake.Crossed] != 1 {
				t.Fatalf("%s: the requests did not cross", order)
			}
			// The FPGA dropped our request when it sent its data. It is retransmitted as soon as that data is
			// acknowledged, not a timeout later.
			if order == "together" && s.ph.Ack > 10*ms {
				t.Fatalf("%s: our send took %v", order, s.ph.Ack)
			}
			if why, stuck := dev.m.Wedged(); stuck {
				t.Fatal(why)
			}
		}
	}
}

func TestTrap03OneHandshakeAtATime(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(500)
	b.at(0).gets(sreq, sInt, nil).sends(clr)
	b.postSend(pattern(1, 1))
	b.at(1 * ms).sends() // held back
	if w, ok := b.pair.SendWait(); !ok || w.State != handshake.Held {
		t.Fatalf("the send is in %v", w.State)
	}
	b.gets(dat, sInt, pattern(500, 2)).sends(ack, sreq)
}

func TestTrap04FragmentedMessageToAnFPGAIsNotRetransmitted(t *testing.T) {
	lost := one(0, 2, nil) // the second datagram of DATA
	run := func(partial handshake.OnPartial) (*rank, *fpga, [2]*simOp, func() result) {
		cfg := hostTo(1, handshake.FPGAPeer(1))
		cfg.OnPartial = partial
		host, dev := newRank(cfg), newFPGA(1, 0)
		got := dev.party().recv(1000)
		ops := [2]*simOp{host.postSend(pattern(1000, 1)), host.postSend(pattern(1000, 2))}
		newWorld(host, dev, lost).run(time.Minute)
		return host, dev, ops, got
	}
	host, dev, ops, got := run(handshake.FailPartial)
	var pe *handshake.PartialError
	if !errors.As(ops[0].err, &pe) || pe.Datagrams != 3 {
		t.Fatalf("first message: %v", ops[0].err)
	}
	if !errors.Is(ops[1].err, handshake.ErrDeadEnd) || !errors.Is(ops[1].err, pe) {
		t.Fatalf("second message: %v", ops[1].err)
	}
	if got().done || dev.m.Busy() == false {
		t.Fatal("the FPGA delivered something")
	}
	// After a restart of the FPGA the user calls Reset, and further sends succeed.
	host.pair.Reset()
	again := host.postSend(pattern(1, 3))
	fresh := newFPGA(1, 0)
	ok := fresh.party().recv(1)
	newWorld(host, fresh, nil).run(time.Minute)
	if again.err != nil || !ok().done {
		t.Fatalf("after Reset: %v", again.err)
	}
	// Retransmission is the user's choice, at the user's risk.
	_, _, ops, got = run(handshake.RetransmitPartial)
	if ops[0].err != nil || bytes.Equal(got().data, pattern(1000, 1)) {
		t.Fatalf("the model is meant to store the retransmission as data: %v", ops[0].err)
	}
}

func TestTrap04FirstDatagramLost(t *testing.T) {
	// The FPGA stores nothing without a header, and asks again three times.
	first := []int{1, 4, 7} // among the host's datagrams
	for lost := range len(first) + 1 {
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		var ops [2]*simOp
		var got [2]func() result
		for i := range ops {
			ops[i] = host.postSend(pattern(1000, uint32(i+1)))
			got[i] = dev.party().recv(1000)
		}
		newWorld(host, dev, func(from, n int, _ []byte) []time.Duration {
			if from == 0 && slices.Contains(first[:lost], n) {
				return nil
			}
			return onTime
		}).run(time.Minute)
		for i, op := range ops {
			if op.err != nil || !bytes.Equal(got[i]().data, pattern(1000, uint32(i+1))) {
				t.Errorf("%d losses: message %d: %v", lost, i, op.err)
			}
		}
	}
	// A CLEAR_TO_SEND that may have crossed with DATA is not answered; one that cannot have crossed is, once.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postSend(pattern(1000, 1))
	b.at(0).sends(sreq)
	b.gets(clr, rInt, nil)
	b.sends(dat, 0, 0)
	b.at(1*ms).gets(clr, rInt, nil).sends()
	b.at(104*ms).gets(clr, rInt, nil).at(105*ms).sends(dat, 0, 0)
	b.gets(clr, rInt, nil).at(9 * time.Second).sends()
}

func TestTrap04OneDatagramRetransmitsSafely(t *testing.T) {
	for nth := 1; nth < 4; nth++ { // DATA and its first retransmissions
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		got := dev.party().recv(346)
		op := host.postSend(pattern(346, 1))
		lost := func(from, n int, _ []byte) []time.Duration {
			if from == 0 && n >= 1 && n <= nth {
				return nil
			}
			return onTime
		}
		newWorld(host, dev, lost).run(time.Minute)
		if op.err != nil || !bytes.Equal(got().data, pattern(346, 1)) {
			t.Fatalf("%d losses: %v", nth, op.err)
		}
	}
}

func TestTrap05StaleRequestsAndClears(t *testing.T) {
	// An FPGA never deliberately sends a CLEAR_TO_SEND without our request.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(clr, rInt, nil)
	b.postSend(pattern(1, 1))
	b.at(1 * ms).sends(sreq)
	// Upstream's CPU library does if it has kept a SEND_REQUEST: its receive is posted. The first such CLEAR_TO_SEND
	// may be a duplicate; if it comes again, the peer waits for DATA.
	c := newBench(t, hostToCPU())
	c.gets(clr, rInt, nil)
	c.at(50 * ms).postSend(pattern(1, 1))
	c.at(51 * ms).sends()
	c.at(100*ms).gets(clr, rInt, nil).sends(dat)
	c.gets(ack, rInt, nil).sends()
	if !c.rank.sends[0].done {
		t.Fatal("the send did not end")
	}
	// It counts once.
	c.postSend(pattern(1, 2))
	c.at(101 * ms).sends(sreq)
}

func TestTrap05NoClearToACPUSenderWhoseDataHasBegun(t *testing.T) {
	// Upstream's sender would keep it and use it for its next message.
	b := newBench(t, hostTo(1, handshake.CPUPeer()))
	b.postRecv(1000)
	b.at(0).gets(sreq, sInt, nil).sends(clr)
	h := protocol.Header{Dst: 0, Src: 1, Size: 1000, Call: sInt, Type: dat}
	all := cut(0, h, pattern(1000, 1), protocol.CPUShape())
	b.raw(all[0]) // the second one is lost
	b.at(1 * ms).raw(all[2])
	b.at(90 * ms).sends()
	for _, d := range all { // after its own timeout
		b.at(101 * ms).raw(d)
	}
	b.sends(ack)
	if op := b.recvs[0]; op.err != nil || !bytes.Equal(op.data, pattern(1000, 1)) {
		t.Fatalf("the message is corrupt: %v", op.err)
	}
}

func TestTrap06LostAck(t *testing.T) {
	// As the receiver, we acknowledge a retransmission.
	b := newBench(t, hostTo(1, handshake.CPUPeer()))
	b.postRecv(1000)
	b.at(0).gets(sreq, sInt, nil).gets(dat, sInt, pattern(1000, 1)).sends(clr, ack)
	b.at(100*ms).gets(dat, sInt, pattern(1000, 1)).sends(ack)
	b.dropped(handshake.ReasonDuplicate, 3) // all datagrams of the retransmission

	// As the sender, we take a new SEND_REQUEST for the ACK.
	c := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op := c.postSend(pattern(1, 1))
	c.at(0).gets(clr, rInt, nil).sends(sreq, dat)
	c.at(50*ms).gets(sreq, sInt, nil).at(120*ms).gets(sreq, sInt, nil)
	if op.done {
		t.Fatal("a SEND_REQUEST that may be a late copy was taken as the ACK")
	}
	c.at(163*ms).gets(sreq, sInt, nil)
	if !op.done || op.err != nil || c.notes[handshake.RequestTakenAsAck] != 1 {
		t.Fatalf("the send is not done: %v", op.err)
	}

	// The peer may have computed for nearly as long as the send waits: it has time to ask again.
	e := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op = e.postSend(pattern(1, 1))
	e.at(0).gets(clr, rInt, nil).sends(sreq, dat)
	e.at(6700*ms).gets(sreq, sInt, nil).at(6820*ms).gets(sreq, sInt, nil)
	if !op.done || op.err != nil {
		t.Fatalf("the send is not done, or failed with %v", op.err)
	}

	// The error of a send that times out names all the circumstances.
	d := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op = d.postSend(pattern(1, 1))
	d.at(0).gets(clr, rInt, nil).sends(sreq, dat)
	d.at(20 * time.Second)
	var te *handshake.TimeoutError
	if !errors.As(op.err, &te) || te.State != handshake.WaitAck || te.For != ack || te.Remote != 1 ||
		te.Retransmissions != 0 {
		t.Fatalf("got %v", op.err)
	}
	const want = "rank 0 waited 6.73s in WAIT_ACK for ACK from rank 1: the message was probably received and only its " +
		"ACK was lost, as an FPGA asks up to three times for DATA that it lacks, and rank 1 asks no more, or rank 1 was restarted: an FPGA that was reset is silent, too"
	if op.err.Error() != want {
		t.Errorf("the error says\n%q, want\n%q", op.err, want)
	}
}

func TestTrap07RanksMustFitTheAddress(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1)
	b.at(0)
	b.raw(protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 0, Src: 2, Call: sInt, Type: sreq}))
	b.raw(protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 0, Src: 4_000_000_000, Call: sInt, Type: sreq}))
	b.sends()
	b.dropped(handshake.ReasonSourceRank, 2)
}

func TestTrap08EmptyMessages(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	op := b.postSend(nil)
	b.at(0).sends()
	if !errors.Is(op.err, handshake.ErrEmpty) {
		t.Fatalf("got %v", op.err)
	}
	// Upstream's CPU library accepts it.
	c := newBench(t, hostTo(1, handshake.CPUPeer()))
	op = c.postSend(nil)
	c.at(0).gets(clr, rInt, nil).gets(ack, rInt, nil).sends(sreq, dat)
	if !op.done || op.err != nil {
		t.Fatal(op.err)
	}
	// An FPGA that sends 0 words sends 40 bytes.
	host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
	dev.party().send(nil)
	r := host.postRecv(4)
	w := newWorld(host, dev, nil)
	w.run(time.Minute)
	if !r.done || r.err != nil || r.words != 0 {
		t.Fatalf("got %v, %d words, %v\n%v", r.done, r.words, r.err, w.log)
	}
}

func TestTrap09ErrorAndBarrier(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.SoftwarePeer()))
	b.gets(sreq, protocol.Barrier, nil).sends()
	b.dropped(handshake.ReasonBarrier, 1)
	b.gets(protocol.Error, rInt, nil).sends()
	b.dropped(handshake.ReasonStale, 1)
	s, r := b.postSend(pattern(1, 1)), b.postRecv(1)
	b.at(0).gets(protocol.Error, rInt, nil).sends(sreq)
	var re *handshake.RemoteError
	if !errors.As(s.err, &re) || re.State != handshake.WaitClear {
		t.Fatalf("send: %v", s.err)
	}
	b.gets(sreq, sInt, nil).gets(protocol.Error, sInt, nil).sends(clr)
	if !errors.As(r.err, &re) || re.State != handshake.WaitData {
		t.Fatalf("receive: %v", r.err)
	}
}

func TestTrap10OddLengths(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1)
	b.at(0)
	req := protocol.CloudFPGA.Append(nil, protocol.Header{Src: 1, Call: sInt, Type: sreq})
	for n := range 32 {
		b.raw(req[:n])
	}
	b.dropped(handshake.ReasonShort, 32)
	b.raw(append(req, 0)).raw(append(req, req...)).sends()
	b.dropped(handshake.ReasonLength, 2)
	b.raw(req).sends(clr) // no state was lost
}

func TestTrap11DestinationRank(t *testing.T) {
	req := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 7, Src: 1, Call: sInt, Type: sreq})
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1)
	b.at(0).raw(req).sends()
	b.dropped(handshake.ReasonDestination, 1)
	req = protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 7, Src: 0, Call: sInt, Type: sreq})
	s := newBench(t, standIn(1, 0)) // the MPE does not check
	s.postRecv(1)
	s.at(0).raw(req).sends(clr)
}

func TestTrap12LongerThanPosted(t *testing.T) {
	for _, c := range []struct{ sent, posted int }{{2, 1}, {347, 346}, {1000, 0}, {1000, 10}, {1000, 999}} {
		host, dev := newRank(hostTo(1, handshake.FPGAPeer(1))), newFPGA(1, 0)
		done := dev.party().send(pattern(c.sent, 1))
		next := dev.party().send(pattern(5, 2))
		r, r2 := host.postRecv(c.posted), host.postRecv(5)
		newWorld(host, dev, nil).run(time.Minute)
		var te *handshake.TruncatedError
		if !errors.As(r.err, &te) || te.Posted != uint32(c.posted) || te.Sent != uint32(c.sent) {
			t.Fatalf("%v: %v", c, r.err)
		}
		if !bytes.Equal(r.data, pattern(c.sent, 1)[:c.posted*4]) || !done().done {
			t.Fatalf("%v: the beginning is not there", c)
		}
		if !next().done || !bytes.Equal(r2.data, pattern(5, 2)) {
			t.Fatalf("%v: the next message suffered", c)
		}
	}
}
