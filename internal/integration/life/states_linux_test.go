package life

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// pair consists of two daemons with one rank each, and a program attached to each. The first daemon survives, and the
// process of the second, the victim, exits or stops.
type pair struct {
	t                *testing.T
	survivor, victim *process
	a, b             *attach.Client // of ranks 0 and 1
	round            byte
	// arriving is the victim's pending receive, and its buffer.
	arriving mpe.Op
	buf      []byte
	calls    int
}

func newPair(t *testing.T, profile, transport string) *pair {
	t.Helper()
	at := newPlace(t)
	more := fmt.Sprintf("http: {listen: \"\"}\nstop_timeout: 1s\ndefaults: {profile: %s, transport: %s, deadlines: "+
		"{ack: 1s}}", profile, transport)
	entries := func(local int) (list []string) {
		for rank := range 2 {
			what := "peer: software"
			if rank == local {
				what = "run: host"
			}
			list = append(list, fmt.Sprintf("  - {rank: %d, address: %q, %s}", rank, at.addr(rank), what))
		}
		return list
	}
	p := &pair{t: t, survivor: newProcess(t, more, entries(0)...), victim: newProcess(t, more, entries(1)...)}
	p.survivor.start()
	p.victim.start()
	p.a, p.b = p.survivor.attach(0), p.victim.attach(1)
	p.exchange()
	return p
}

// exchange sends messages in both directions.
func (p *pair) exchange() {
	p.t.Helper()
	for _, n := range []int{4, 100_000} {
		p.round++
		transfer(p.t, p.a, p.b, bytes.Repeat([]byte{p.round, 1, 2, 3}, n/4))
		transfer(p.t, p.b, p.a, bytes.Repeat([]byte{p.round, 3, 2, 1}, n/4))
	}
}

// peer returns the survivor's state of the victim's rank.
func (p *pair) peer() state.Peer {
	p.t.Helper()
	return p.survivor.rank(0).Peers[0]
}

// big is the length of a message that the test interrupts in transit.
const big = 32 << 20

// inState is an operation of the survivor in a particular state.
type inState struct {
	op  mpe.Op
	buf []byte // of a receive
	// complete performs the action for which the operation waits. after, if not nil, performs the remaining actions.
	complete, after func()
	want            []byte // final content of buf
}

const tag = 5

// states puts an operation of the survivor into each state that depends on the victim.
var states = []struct {
	name  string
	begin func(p *pair) inState
	// posted means that no part of the message is in transit. late means that the operation is posted after the victim
	// is gone.
	posted, late bool
}{
	{name: "receive posted", posted: true, begin: func(p *pair) inState {
		s := inState{buf: make([]byte, 4), want: []byte("four")}
		s.op = begin(p.t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: s.buf})
		s.complete = func() { p.send(s.want) }
		until(p.t, "the receive is posted", func() bool { return p.survivor.rank(0).Posted == 1 })
		return s
	}},
	{name: "probe", posted: true, begin: func(p *pair) inState {
		o := probing(p.t, p.a, mpe.Match{Source: 1, Tag: tag})
		until(p.t, "the probe waits", func() bool {
			programs := p.survivor.local(0).Attached
			return len(programs) == 1 && programs[0].Operations == 1
		})
		return inState{op: o, complete: func() { p.send([]byte("four")) }, after: func() {
			if _, err := operate(p.t.Context(), p.a,
				mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: make([]byte, 4)}); err != nil {
				p.t.Error(err)
			}
		}}
	}},
	{name: "send announced", begin: func(p *pair) inState {
		s := inState{op: begin(p.t, p.a, mpe.Operation{Kind: mpe.OpSendSync, Peer: 1, Tag: tag, Buf: []byte("four")})}
		s.complete = func() { p.receive([]byte("four")) }
		until(p.t, "the send is announced", func() bool {
			w := p.peer().Sending
			return w != nil && w.State == handshake.WaitClear && p.victim.rank(1).Unexpected == 1
		})
		return s
	}},
	{name: "send in transit", begin: func(p *pair) inState {
		data := bytes.Repeat([]byte("in transit"), big/10)
		s := inState{op: begin(p.t, p.a, mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tag, Buf: data})}
		s.complete = func() { p.receive(data) }
		p.buf = make([]byte, len(data))
		p.arriving = begin(p.t, p.b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: tag, Buf: p.buf})
		until(p.t, "the send is in transit", func() bool {
			w := p.peer().Sending
			return w != nil && w.State == handshake.WaitAck || isOver(s.op)
		})
		return s
	}},
	{name: "receive in transit", begin: func(p *pair) inState {
		s := inState{buf: make([]byte, big), want: bytes.Repeat([]byte("ways"), big/4)}
		s.op = begin(p.t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: s.buf})
		s.complete = func() {}
		begin(p.t, p.b, mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: tag, Buf: s.want})
		until(p.t, "the receive is in transit", func() bool {
			w := p.peer().Receiving
			return w != nil && w.State == handshake.Receiving || isOver(s.op)
		})
		return s
	}},
	{name: "receive posted later", late: true, begin: func(p *pair) inState {
		begin(p.t, p.b, mpe.Operation{Kind: mpe.OpSendSync, Peer: 0, Tag: tag + 1, Buf: []byte("lost")})
		until(p.t, "the victim's message is announced", func() bool { return p.survivor.rank(0).Unexpected == 1 })
		return inState{}
	}},
	{name: "receive from any source", late: true, begin: func(p *pair) inState {
		s := inState{buf: make([]byte, 4), want: []byte("four")}
		s.op = begin(p.t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: tag, Buf: s.buf})
		until(p.t, "the receive is posted", func() bool { return p.survivor.rank(0).Posted == 1 })
		return s
	}},
	{name: "collective call", posted: true, begin: func(p *pair) inState {
		s := inState{op: p.barrier(p.a)}
		s.complete = func() {
			if err := outcome(p.t, p.barrier(p.b)); err != nil {
				p.t.Error(err)
			}
		}
		until(p.t, "the call waits for the victim", func() bool {
			calls := p.survivor.rank(0).Calls
			return len(calls) == 1 && len(calls[0].WaitsFor) == 1
		})
		return s
	}},
}

// send sends to the survivor.
func (p *pair) send(data []byte) {
	p.t.Helper()
	if err := outcome(p.t, begin(p.t, p.b, mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: tag, Buf: data})); err != nil {
		p.t.Error(err)
	}
}

func (p *pair) receive(want []byte) {
	p.t.Helper()
	if p.arriving == nil {
		p.buf = make([]byte, len(want))
		p.arriving = begin(p.t, p.b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Tag: tag, Buf: p.buf})
	}
	if err := outcome(p.t, p.arriving); err != nil || !bytes.Equal(p.buf, want) {
		p.t.Errorf("%v, intact: %v", err, bytes.Equal(p.buf, want))
	}
	p.arriving = nil
}

// sendOther sends the survivor a message that does not match its operation.
func (p *pair) sendOther() {
	p.t.Helper()
	if err := outcome(p.t, begin(p.t, p.b,
		mpe.Operation{Kind: mpe.OpSend, Peer: 0, Tag: tag + 2, Buf: []byte("four")})); err != nil {
		p.t.Error(err)
	}
	if err := outcome(p.t, begin(p.t, p.a,
		mpe.Operation{Kind: mpe.OpRecv, Peer: mpe.AnySource, Tag: tag + 2, Buf: make([]byte, 4)})); err != nil {
		p.t.Error(err)
	}
}

// barrier starts a barrier of both ranks on one of them. Each pair of calls uses a separate communicator.
func (p *pair) barrier(d *attach.Client) mpe.Op {
	p.t.Helper()
	o, err := d.StartCollective(&collective.Operation{
		Call: coll.Call{Collective: coll.Barrier, Rank: d.Rank(), Ranks: 2}, Members: []int{0, 1},
		Comm: uint32(101 + 2*p.calls), Tag: 1,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return o
}

// probed wraps a blocking probe as an operation.
type probed struct {
	mpe.Op
	done chan struct{}
	err  error
}

// probing starts a probe.
func probing(t *testing.T, d mpe.Device, m mpe.Match) mpe.Op {
	o := &probed{done: make(chan struct{})}
	ctx, cancel := context.WithTimeout(context.Background(), 2*limit)
	t.Cleanup(cancel)
	go func() {
		defer close(o.done)
		_, _, o.err = d.Probe(ctx, m, true)
	}()
	return o
}

func (o *probed) Await(ctx context.Context) (*mpe.Status, error) {
	select {
	case <-o.done:
		return new(mpe.Status), o.err
	case <-ctx.Done():
		return new(mpe.Status), ctx.Err()
	}
}

func (o *probed) Test() (mpe.Status, bool, error) {
	select {
	case <-o.done:
		return mpe.Status{}, true, o.err
	default:
		return mpe.Status{}, false, nil
	}
}

func (o *probed) Free() {}

// isOver reports whether an operation is complete.
func isOver(o mpe.Op) bool {
	_, ended, _ := o.Test()
	return ended
}

// isLost reports whether an error means that the peer was lost.
func isLost(err error) bool {
	return errors.Is(err, mpe.ErrPeerLost) || errors.Is(err, extended.ErrSession) || errors.Is(err, extended.ErrTimeout)
}

// TestStates ends, stops and restarts a daemon while an operation of another daemon is in each state that depends on
// it. It checks that each operation completes with the right result or error, that operations posted to a missing rank
// wait for its return, and that the returned rank works.
func TestStates(t *testing.T) {
	for _, transport := range []string{"udp", "tcp", "shm"} {
		t.Run(transport, func(t *testing.T) {
			p := newPair(t, "extended", transport)
			for i := range states {
				p.stopped(i)
				p.ended(i, transport, "killed")
				p.ended(i, transport, "terminated")
				if t.Failed() { // leftovers would fail the rest
					break
				}
			}
		})
	}
}

// bring puts an operation into a state and stops the victim.
func (p *pair) bring(i int) inState {
	p.t.Helper()
	p.calls++
	for {
		s := states[i].begin(p)
		p.victim.stop()
		if s.op == nil || !isOver(s.op) {
			return s
		}
		// The message was received before the process stopped.
		p.victim.signal(syscall.SIGCONT)
		if err := outcome(p.t, s.op); err != nil {
			p.t.Fatal(err)
		}
		p.arriving = nil
	}
}

// stopped stops and continues the victim, and checks that the operation completes.
func (p *pair) stopped(i int) {
	state := &states[i]
	if state.late {
		return
	}
	p.run(state.name+", stopped", func() {
		s := p.bring(i)
		p.victim.signal(syscall.SIGCONT)
		s.complete()
		if err := outcome(p.t, s.op); err != nil || s.want != nil && !bytes.Equal(s.buf, s.want) {
			p.t.Errorf("%v, intact: %v", err, bytes.Equal(s.buf, s.want))
		}
		if s.after != nil {
			s.after()
		}
	})
}

// run runs a case as a subtest, and checks that both ranks work afterwards.
func (p *pair) run(name string, f func()) {
	outer := p.t
	defer func() { p.t = outer }()
	outer.Run(name, func(t *testing.T) {
		p.t = t
		f()
		if !t.Failed() {
			p.exchange()
			until(t, "nothing is left", func() bool {
				s := p.survivor.rank(0)
				return s.Posted+s.Unexpected+len(s.Calls) == 0 && s.Peers[0].Sending == nil &&
					s.Peers[0].Receiving == nil
			})
		}
	})
}

// ended ends and restarts the victim.
func (p *pair) ended(i int, transport, how string) {
	state := &states[i]
	p.run(state.name+", "+how, func() {
		t, s := p.t, p.bring(i)
		p.arriving = nil
		if how == "killed" {
			p.victim.kill()
		} else {
			p.victim.terminate()
		}
		// Over UDP, only missing answers show that a process was killed.
		silent := transport == "udp" && how == "killed"
		unknown := silent && (state.posted || s.op == nil)
		complete := false
		if s.op != nil && !state.late && !unknown {
			switch err := outcome(t, s.op); {
			case err == nil && !state.posted: // the victim sent all of it before the end, or within stop_timeout
				if s.want != nil && !bytes.Equal(s.buf, s.want) {
					t.Error("wrong data")
				}
				complete = true
			case !isLost(err), state.name == "receive posted" && !errors.Is(err, mpe.ErrPeerLost):
				t.Errorf("error %v", err)
			}
		}
		if (state.late || complete) && !silent {
			until(t, "the end is known",
				func() bool { return p.peer().Extended.PeerSession == 0 && p.survivor.rank(0).Unexpected == 0 })
		}
		if s.op == nil {
			s = inState{buf: make([]byte, 4), want: []byte("four")}
			s.op = begin(t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Tag: tag, Buf: s.buf})
			until(t, "the receive is posted", func() bool { return p.survivor.rank(0).Posted == 1 })
		}
		p.victim.start()
		p.b = p.victim.attach(1)
		switch {
		case unknown: // until the peer sends something
			p.sendOther()
			if err := outcome(t, s.op); !errors.Is(err, mpe.ErrPeerLost) {
				t.Errorf("error %v", err)
			}
		case complete && silent: // packets to the previous process are lost
			p.sendOther()
		case state.late:
			if isOver(s.op) {
				t.Errorf("the operation is complete: %v", outcome(t, s.op))
				return
			}
			p.send(s.want)
			if err := outcome(t, s.op); err != nil || !bytes.Equal(s.buf, s.want) {
				t.Errorf("%v, %q", err, s.buf)
			}
		}
	})
}

// TestDeployedProfile checks posted receives, and sends that wait for CLEAR_TO_SEND, in the cloudfpga profile, which
// does not signal the end of a peer. They must wait until the rank is restarted.
func TestDeployedProfile(t *testing.T) {
	p := newPair(t, "cloudfpga", "udp")
	for _, how := range []string{"stopped", "killed", "terminated"} {
		t.Run(how, func(t *testing.T) {
			p.t = t
			buf, want := make([]byte, 4), []byte("four")
			receive := begin(t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Buf: buf})
			send := begin(t, p.a, mpe.Operation{Kind: mpe.OpSend, Peer: 1, Buf: want})
			until(t, "both wait", func() bool {
				s := p.survivor.rank(0)
				return s.Posted == 1 && s.Peers[0].Sending != nil && s.Peers[0].Sending.State == handshake.WaitClear
			})
			p.victim.stop()
			switch how {
			case "killed":
				p.victim.kill()
			case "terminated":
				p.victim.terminate()
			}
			if isOver(receive) || isOver(send) {
				t.Error("an operation is complete")
			}
			if how == "stopped" {
				p.victim.signal(syscall.SIGCONT)
			} else {
				p.victim.start()
				p.b = p.victim.attach(1)
			}
			got := make([]byte, 4)
			if err := outcome(t, begin(t, p.b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: got})); err != nil ||
				!bytes.Equal(got, want) {
				t.Errorf("%v, %q", err, got)
			}
			if err := outcome(t, begin(t, p.b, mpe.Operation{Kind: mpe.OpSend, Peer: 0, Buf: want})); err != nil {
				t.Error(err)
			}
			if err := outcome(t, send); err != nil {
				t.Error(err)
			}
			if err := outcome(t, receive); err != nil || !bytes.Equal(buf, want) {
				t.Errorf("%v, %q", err, buf)
			}
			p.exchange()
		})
	}
}

// TestProgramKilled checks that a rank outlives its program. The next program must get messages that the killed program
// had not received, and receives from the rank must wait for messages of the next program.
func TestProgramKilled(t *testing.T) {
	p := newPair(t, "extended", "shm")
	if err := p.b.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		child := startChild(t, p.victim.attachSocket(), 1)
		n := uint32(2*i + 1)
		request, reply := make([]byte, maxMessage), make([]byte, maxMessage)
		fill(request, 0, n)
		receive := begin(t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Comm: commReplies, Tag: int(n), Buf: reply})
		if err := outcome(t, begin(t, p.a,
			mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tagRequest, Buf: request})); err != nil {
			t.Error(err)
		}
		if err := outcome(t, receive); err != nil || !bytes.Equal(request, reply) {
			t.Errorf("%v, intact: %v", err, bytes.Equal(request, reply))
		}
		waits := begin(t, p.a, mpe.Operation{Kind: mpe.OpRecv, Peer: 1, Comm: commReplies, Tag: int(n + 1), Buf: reply})
		child.kill()
		until(t, "the rank is free", func() bool { return len(p.victim.local(1).Attached) == 0 })
		fill(request, 0, n+1)
		sent := begin(t, p.a, mpe.Operation{Kind: mpe.OpSend, Peer: 1, Tag: tagRequest, Buf: request})
		until(t, "the message waits", func() bool { return p.victim.rank(1).Unexpected == 1 })
		if isOver(waits) {
			t.Error("the end of a program completed a receive from its rank")
		}
		next := startChild(t, p.victim.attachSocket(), 1)
		if err := outcome(t, sent); err != nil {
			t.Error(err)
		}
		if err := outcome(t, waits); err != nil || !bytes.Equal(request, reply) {
			t.Errorf("%v, intact: %v", err, bytes.Equal(request, reply))
		}
		next.kill()
		until(t, "the rank is free", func() bool { return len(p.victim.local(1).Attached) == 0 })
	}
}

// TestOwnDaemonKilled checks that the operations of a program end when its daemon is killed, and that the program can
// attach again.
func TestOwnDaemonKilled(t *testing.T) {
	p := newPair(t, "extended", "udp")
	receive := begin(t, p.b, mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 4)})
	probe := probing(t, p.b, mpe.Match{Source: 0})
	p.victim.kill()
	for _, o := range []mpe.Op{receive, probe} {
		if err := outcome(t, o); !errors.Is(err, mpe.ErrClosed) {
			t.Error(err)
		}
	}
	p.victim.start()
	p.b = p.victim.attach(1)
	p.sendOther() // until then, nothing shows that the rank was killed
	p.exchange()
}
