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

// isDeadEnd checks that an operation failed because of the dead end with the given cause.
func isDeadEnd(t *testing.T, what string, err, cause error) {
	t.Helper()
	dead, ok := errors.AsType[*handshake.DeadEndError](err)
	if !ok || dead.Cause != cause || !strings.Contains(err.Error(), cause.Error()) {
		t.Errorf("%s: %v, want the dead end of: %v", what, err, cause)
	}
}

// If an FPGA does not acknowledge a fragmented message, all operations that are waiting for the FPGA, and all later
// ones, fail with the error of that message.
func TestDeadEndOfAnFPGA(t *testing.T) {
	partial := func() (*bench, error) {
		b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
		b.postSend(pattern(1000, 1))
		b.postRecv(5)
		b.at(0).sends(sreq)
		b.gets(clr, rInt, nil).sends(dat, 0, 0)
		b.postSend(pattern(1, 2))
		b.at(time.Minute).sends()
		first := b.rank.sends[0].err
		if !errors.Is(first, handshake.ErrPartial) || errors.Is(first, handshake.ErrDeadEnd) ||
			!strings.Contains(first.Error(), `run "zrlctl reset 1 --from 0"`) {
			t.Fatal(first)
		}
		if len(b.ends) != 1 || b.ends[0] != error(b.pair.DeadEnd()) {
			t.Fatalf("dead ends: %v", b.ends)
		}
		return b, first
	}
	b, first := partial()
	isDeadEnd(t, "the receive that was posted", b.recvs[0].err, first)
	isDeadEnd(t, "the send that was queued", b.rank.sends[1].err, first)
	late := b.postRecv(5)
	b.at(2 * time.Minute).sends()
	isDeadEnd(t, "a receive that is posted later", late.err, first)

	for name, proof := range map[string]func(b *bench){
		"SEND_REQUEST, again": func(b *bench) { b.gets(sreq, sInt, nil).at(b.now+102*ms).gets(sreq, sInt, nil) },
		"a late ACK":          func(b *bench) { b.gets(ack, rInt, nil) },
		"Reset":               func(b *bench) { b.pair.Reset() },
	} {
		b, _ := partial()
		proof(b)
		op := b.postSend(pattern(1, 3))
		b.at(2 * time.Minute)
		b.gets(clr, rInt, nil).gets(ack, rInt, nil)
		if op.err != nil || !op.done || b.pair.DeadEnd() != nil {
			t.Errorf("after %s: %v, %v", name, op.err, b.pair.DeadEnd())
		}
	}
	// In the middle of a message, the FPGA requests neither another message nor a receive. A SEND_REQUEST that comes
	// once, or with copies, may be from before.
	for name, packet := range map[string]protocol.Type{"CLEAR_TO_SEND": clr, "DATA": dat, "SEND_REQUEST": sreq} {
		b, first := partial()
		call := map[bool]protocol.Call{true: rInt, false: sInt}[packet == clr]
		b.gets(packet, call, nil).at(b.now+50*ms).gets(packet, call, nil)
		if b.pair.DeadEnd() == nil {
			t.Errorf("%s ends the dead end", name)
		}
		isDeadEnd(t, "a send after "+name, sendNow(b), first)
	}
}

// Requests that the FPGA sent before the dead end are not answered, because it would store the answers as data.
func TestDeadEndForgetsRequests(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(sreq, sInt, nil)
	b.at(1 * ms).postSend(pattern(1000, 1))
	b.at(1 * ms).sends(sreq)
	b.gets(clr, rInt, nil).sends(dat, 0, 0)
	b.postRecv(5)
	b.at(time.Minute).sends()
	isDeadEnd(t, "the receive", b.recvs[0].err, b.rank.sends[0].err)
}

// A deployed node whose DATA does not arrive is in a dead end if it is known to be in that send.
func TestDeadEndOfASender(t *testing.T) {
	all := cut(0, protocol.Header{Dst: 0, Src: 1, Size: 1000, Call: sInt, Type: dat}, pattern(1000, 1),
		protocol.CPUShape())
	for _, tt := range []struct {
		name string
		peer handshake.PeerRules
		does func(b *bench)
		dead bool
	}{
		{"an FPGA that asked once", handshake.FPGAPeer(1), func(*bench) {}, false},
		{"and whose request was duplicated", handshake.FPGAPeer(1),
			func(b *bench) { b.at(60*ms).gets(sreq, sInt, nil) }, false},
		{"that asked twice", handshake.FPGAPeer(1), func(b *bench) { b.at(112*ms).gets(sreq, sInt, nil) }, true},
		{"that began to send", handshake.FPGAPeer(1), func(b *bench) { b.raw(all[0]).raw(all[1]) }, true},
		{"and whose message was started over", handshake.FPGAPeer(1),
			func(b *bench) { b.raw(all[0]).at(time.Second).raw(all[2]) }, true},
		{"a CPU program that began to send", handshake.CPUPeer(), func(b *bench) { b.raw(all[0]) }, true},
		{"a zrlmpid that began to send", handshake.SoftwarePeer(), func(b *bench) { b.raw(all[0]) }, false},
	} {
		b := newBench(t, hostTo(1, tt.peer))
		b.postRecv(1000)
		b.at(0).gets(sreq, sInt, nil)
		tt.does(b)
		b.postSend(pattern(1, 1)) // held back
		b.at(9900 * ms).out()
		b.at(12 * time.Second)
		send, first := b.rank.sends[0], b.recvs[0].err
		te, ok := errors.AsType[*handshake.TimeoutError](first)
		if !ok || te.DeadEnd != tt.dead || strings.Contains(first.Error(), `run "zrlctl reset 1 --from 0"`) != tt.dead {
			t.Errorf("%s: %v", tt.name, first)
		}
		if !tt.dead {
			if send.done || b.pair.DeadEnd() != nil || len(b.ends) > 0 {
				t.Errorf("%s: the send is done with %v", tt.name, send.err)
			}
			continue
		}
		isDeadEnd(t, tt.name+": the send", send.err, first)
		for _, d := range b.out() {
			if h, _ := protocol.CloudFPGA.Parse(d); h.Type == sreq {
				t.Errorf("%s: the send was begun all the same", tt.name)
			}
		}
		// An ACK may be late. A peer that sends a new SEND_REQUEST no longer waits for it.
		b.gets(ack, rInt, nil)
		isDeadEnd(t, tt.name+": a later send", sendNow(b), first)
		b.gets(sreq, sInt, nil)
		isDeadEnd(t, tt.name+": a send after a SEND_REQUEST, which may be a copy", sendNow(b), first)
		b.at(b.now+1100*ms).gets(sreq, sInt, nil)
		if err := sendNow(b); err != nil {
			t.Errorf("%s, after a SEND_REQUEST that came again: %v", tt.name, err)
		}
	}
	// The peer has asked again before the receive was posted, so that its DATA now is its last.
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.gets(sreq, sInt, nil).at(112*ms).gets(sreq, sInt, nil)
	b.postRecv(1)
	b.at(time.Minute)
	if te, ok := errors.AsType[*handshake.TimeoutError](b.recvs[0].err); !ok || !te.DeadEnd {
		t.Error(b.recvs[0].err)
	}
}

// sendNow begins a send and returns its error.
func sendNow(b *bench) error {
	op := b.postSend(pattern(1, 9))
	b.at(b.now)
	return op.err
}

// An upstream CPU program that has not acknowledged a fragmented message may have received all of it. One trial send is
// allowed, because its SEND_REQUEST does no harm, and is answered if the program receives.
func TestDeadEndOfACPUProgram(t *testing.T) {
	partial := func() (*bench, error) {
		b := newBench(t, hostToCPU())
		b.postSend(pattern(1000, 1))
		b.at(0).gets(clr, rInt, nil)
		b.at(time.Minute).out()
		first := b.rank.sends[0].err
		if !errors.Is(first, handshake.ErrPartial) || len(b.ends) != 1 {
			t.Fatalf("%v, dead ends %v", first, b.ends)
		}
		return b, first
	}
	answered, _ := partial()
	op := answered.postSend(pattern(1, 2))
	answered.at(time.Minute + 1001*ms).sends(sreq)
	answered.gets(clr, rInt, nil).sends(dat)
	answered.gets(ack, rInt, nil)
	if op.err != nil || !op.done || answered.pair.DeadEnd() != nil {
		t.Errorf("the send that was answered: %v", op.err)
	}

	b, first := partial()
	op = b.postSend(pattern(1, 2))
	b.at(time.Minute + 1999*ms)
	if op.done {
		t.Errorf("the send is done early: %v", op.err)
	}
	b.at(time.Minute + 2000*ms)
	isDeadEnd(t, "the send that was tried", op.err, first)
	isDeadEnd(t, "the next send", sendNow(b), first)
	recv := b.postRecv(1)
	b.at(2 * time.Minute)
	isDeadEnd(t, "a receive", recv.err, first)
	b.gets(clr, rInt, nil) // to the SEND_REQUEST that it has kept
	isDeadEnd(t, "a send after a CLEAR_TO_SEND, which may be a copy", sendNow(b), first)
	b.at(b.now+100*ms).gets(clr, rInt, nil)
	if err := sendNow(b); err != nil {
		t.Errorf("after a late CLEAR_TO_SEND: %v", err)
	}

	// The peer's own message shows that it continues while the send is tried: the send then waits as long as any other.
	b, _ = partial()
	op = b.postSend(pattern(1, 2))
	b.at(time.Minute).gets(sreq, sInt, nil)
	b.at(time.Minute+100*ms).gets(sreq, sInt, nil)
	b.at(2 * time.Minute)
	if op.done || b.pair.DeadEnd() != nil {
		t.Errorf("the send that was tried: %v; %v", op.err, b.pair.DeadEnd())
	}
}

// After a crash of upstream's program, the next send does not wait forever.
func TestDeadEndAfterACrash(t *testing.T) {
	host, dev := newRank(hostToCPU()), newCPU(1, 0)
	dev.party().recv(1000)
	twice := func(from, n int, _ []byte) []time.Duration {
		switch { // as in TestTrap17FirstDatagramTwiceToACPUReceiver
		case from == 0 && n == 1:
			return []time.Duration{0, latency}
		case from == 0 && n == 3:
			return []time.Duration{2 * latency}
		}
		return onTime
	}
	ops := []*simOp{host.postSend(pattern(1000, 1)), host.postSend(pattern(5, 2)), host.postSend(pattern(5, 3))}
	in := host.postRecv(5)
	newWorld(host, dev, twice).run(time.Minute)
	if _, crashed := dev.m.Crashed(); !crashed {
		t.Fatal("it has not crashed")
	}
	for i, op := range append(ops[1:], in) {
		isDeadEnd(t, []string{"the next send", "the last send", "the receive"}[i], op.err, ops[0].err)
	}
}

// A message that was in progress when the user restarted the peer does not cause a dead end.
func TestResetInMidMessage(t *testing.T) {
	b := newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postSend(pattern(1000, 1))
	b.at(0).gets(clr, rInt, nil)
	b.at(5 * time.Second)
	b.pair.Reset()
	op := b.postSend(pattern(1000, 2))
	b.at(30 * time.Second)
	if err := b.rank.sends[0].err; !errors.Is(err, handshake.ErrPartial) || b.pair.DeadEnd() != nil || op.done {
		t.Fatalf("%v, %v, %v", err, b.pair.DeadEnd(), op.err)
	}
	b.gets(clr, rInt, nil).at(time.Minute)
	if !errors.Is(op.err, handshake.ErrPartial) || b.pair.DeadEnd() == nil {
		t.Errorf("the next message: %v, %v", op.err, b.pair.DeadEnd())
	}

	b = newBench(t, hostTo(1, handshake.FPGAPeer(1)))
	b.postRecv(1000)
	b.at(0).gets(sreq, sInt, nil)
	b.raw(cut(0, protocol.Header{Dst: 0, Src: 1, Size: 1000, Call: sInt, Type: dat}, pattern(1000, 1),
		protocol.CPUShape())[0])
	b.pair.Reset()
	b.at(time.Minute)
	if b.recvs[0].err == nil || b.pair.DeadEnd() != nil {
		t.Errorf("%v, %v", b.recvs[0].err, b.pair.DeadEnd())
	}
	b.postRecv(5)
	b.gets(sreq, sInt, nil).at(time.Minute + ms)
	if b.gets(dat, sInt, pattern(5, 1)); !bytes.Equal(b.recvs[1].data, pattern(5, 1)) {
		t.Errorf("the next message: %v", b.recvs[1].err)
	}
}
