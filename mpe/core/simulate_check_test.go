package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// waits checks that the status contains every pending operation, and that no operation waits for an ACK forever.
func (p *program) waits() error {
	if err := p.abandoned(); err != nil {
		return err
	}
	if err := p.progress(); err != nil {
		return err
	}
	for rank, e := range p.cores {
		if e == nil || p.halted(rank) {
			continue
		}
		if s := e.Snapshot(); len(s.Peers) == 0 {
			return fmt.Errorf("rank %d: the status has no peers", rank)
		}
		named := map[*Request]bool{}
		var overdue *Waiting
		eachWait(e, func(w *Waiting) {
			named[w.req] = true
			if w.State == handshake.WaitAck && p.now+p.ports[rank].ahead-w.Since > 15*time.Second {
				overdue = new(*w)
			}
		})
		// A call forwards the messages that a closed rank was to send.
		if overdue != nil && !(p.fpga && rank == 1) && !(p.collective && p.closes) {
			return fmt.Errorf("rank %d: a send to rank %d waits for an ACK for %v", rank, overdue.Remote,
				p.now-overdue.Since)
		}
		for _, o := range p.posted {
			if o.rank == rank && o.r != nil && !o.over() && o.call == nil && !named[o.r] {
				return fmt.Errorf("rank %d: the status does not name an operation with rank %d", rank, o.op.Peer)
			}
		}
	}
	return nil
}

// deadEnds checks that no operation waits for a peer in a dead end, and that a node that has requested to send a
// message, but has not sent it, is in a dead end.
func (p *program) deadEnds() error {
	for rank, e := range p.cores {
		if e == nil || p.halted(rank) {
			continue
		}
		for peer := range e.peers.created {
			if peer == nil || peer.deadEnd() == nil {
				continue
			}
			why := peer.deadEnd()
			if n := p.node(peer.rank); n != nil && errors.Is(why, handshake.ErrTimeout) && !n.stuck() {
				return fmt.Errorf("rank %d takes rank %d for one that cannot go on, and it can: %w", rank,
					peer.rank, why)
			}
			p.dead++
			var waits *Waiting
			eachWait(e, func(w *Waiting) {
				// One send is tried with a program that uses upstream's library.
				tried := w.Send && w.State == handshake.WaitClear && p.now+p.ports[rank].ahead-w.Since <= 2*time.Second
				if w.peer == peer && !tried {
					waits = new(*w)
				}
			})
			if waits != nil {
				return fmt.Errorf("rank %d: an operation waits for rank %d, send %v, state %v, although: %w", rank,
					peer.rank, waits.Send, waits.State, why)
			}
		}
		if why := e.CheckSender(AnySource, 0); why != nil {
			for w := range postedWaits(e, e.matching.forComm(0)) {
				if w.AnySource {
					return fmt.Errorf("rank %d: a receive from any source waits, although: %w", rank, why)
				}
			}
		}
	}
	return nil
}

// progress checks that a posted receive is matched if its message was accepted: a sender must not hold back a send
// for which a receive is waiting.
func (p *program) progress() (err error) {
	if !p.floods {
		return nil
	}
	refused := slices.ContainsFunc(p.posted, func(o *posted) bool {
		return o.id == afterFlood && (o.r == nil || o.lost || o.over() && o.r.Err != nil)
	})
	for _, o := range p.posted {
		if o.op.Kind == OpRecv && o.op.Tag == floodTag+1 && o.r != nil && !o.over() && !refused && !p.restarts {
			return fmt.Errorf("rank %d waits for the message that rank 0 has sent after its flood", o.rank)
		}
	}
	for rank, e := range p.cores {
		for peer := range e.peers.created {
			if peer == nil || p.cores[peer.rank].state != running {
				continue
			}
			for w := range peer.sendWaits {
				if w.send.State != extended.Queued {
					continue
				}
				m := p.cores[peer.rank].matching.matchers[w.send.Comm]
				if m == nil {
					continue
				}
				m.EachPosted(func(source, tag int32, _ *Request) bool {
					if (source == AnySource || int(source) == rank) && (tag == AnyTag || uint32(tag) == w.send.Tag) {
						err = fmt.Errorf("rank %d waits for a message with tag %d, which rank %d has accepted and "+
							"holds back", peer.rank, tag, rank)
					}
					return err == nil
				})
			}
		}
	}
	return err
}

// abandoned checks that no rank waits in a call that has failed on another rank, unless ranks have detached:
// others may wait for their return.
func (p *program) abandoned() error {
	failed := map[int]*posted{} // by the number of the call
	for _, o := range p.posted {
		switch {
		case o.gone:
			return nil
		case o.call != nil && o.r != nil && o.over() && o.r.Err != nil:
			failed[o.call.Tag] = o
		}
	}
	for _, o := range p.posted {
		if o.call == nil || o.r == nil || o.over() {
			continue
		}
		if f := failed[o.call.Tag]; f != nil {
			return fmt.Errorf("rank %d waits in call %d, which has failed on rank %d: %w", o.rank, o.call.Tag, f.rank,
				f.r.Err)
		}
	}
	return nil
}

// check returns an error if the run violated an expectation.
func (p *program) check() error {
	if p.failure != nil {
		return p.failure
	}
	gone := make([]bool, p.ranks) // ranks that crashed, or were stopped forever
	for rank := range p.ports {
		// A clock that jumps may make a peer appear silent for long.
		gone[rank] = p.halted(rank) || p.kind.net.jump > 0 && p.unreachable
	}
	for _, o := range p.posted {
		if o.gone {
			gone[o.rank] = true
		} else if !o.over() {
			return fmt.Errorf("rank %d: an operation with rank %d has not ended", o.rank, o.op.Peer)
		}
	}
	if err := p.checkContent(gone); err != nil {
		return err
	}
	if p.kind.net.loss+p.kind.net.stall > 0 && (p.fpga || p.nodes != nil) {
		return nil // losses may end any operation
	}
	for rank, port := range p.ports {
		if port.node != nil && port.node.broken() != "" {
			return fmt.Errorf("rank %d: %s", rank, port.node.broken())
		}
	}
	for rank, e := range p.cores {
		if e == nil {
			continue
		}
		for peer := range e.peers.created {
			if peer != nil && peer.events[state.EventWouldWedge] > 0 {
				return fmt.Errorf("rank %d has sent stand-in %d a packet that would wedge an FPGA", peer.rank, rank)
			}
		}
	}
	if slices.Contains(gone, true) {
		return nil // this ends operations of other ranks
	}
	if p.kind.net.stall > 0 && p.ordered && !p.kind.net.stream {
		return nil // a host that is stopped in mid-message has to start it over each time
	}
	return p.checkEnds()
}

// checkContent checks that each message was received intact and once, and by its receiver if its send succeeded.
func (p *program) checkContent(gone []bool) error {
	received := map[uint32]int{}
	sends := map[uint32]*posted{}
	// Messages of 0 words, by pair: those received, all of them, and those sent successfully.
	empty, all, sent := map[[2]int]int{}, map[[2]int]int{}, map[[2]int]int{}
	for _, o := range p.posted {
		switch {
		case o.event != nil:
		case o.call != nil:
			if !o.lost && o.r.Err == nil && !slices.Equal(o.call.Recv, o.want) {
				return fmt.Errorf("rank %d: %v number %d has another result", o.rank, o.call.Call.Collective,
					o.call.Tag)
			}
		case o.op.Kind != OpRecv:
			sends[o.id] = o
		}
	}
	for _, o := range p.posted {
		if o.lost || o.call != nil || o.event != nil || o.op.Kind != OpRecv || o.r.Err != nil {
			continue
		}
		b := o.op.Buf[:o.r.Status.Bytes]
		if len(b) == 0 {
			empty[[2]int{o.r.Status.Peer, o.rank}]++
			continue
		}
		id := messageID(b)
		s := sends[id]
		if s == nil || s.op.Peer != o.rank || s.rank != o.r.Status.Peer || s.op.Comm != o.op.Comm ||
			!p.ordered && s.op.Tag != o.r.Status.Tag {
			return fmt.Errorf("rank %d has received message %d from rank %d, which was not sent so", o.rank, id,
				o.r.Status.Peer)
		}
		want := make([]byte, len(s.op.Buf))
		fill(want, id)
		if !slices.Equal(b, want) {
			return fmt.Errorf("rank %d has received message %d from rank %d with other content", o.rank, id,
				o.r.Status.Peer)
		}
		if received[id]++; received[id] > 1 {
			return fmt.Errorf("rank %d has received message %d twice", o.rank, id)
		}
		if f := o.found; o.probe != nil &&
			(f.Peer != o.r.Status.Peer || f.Tag != o.r.Status.Tag || f.Bytes != o.r.Status.Bytes) {
			return fmt.Errorf("rank %d has received another message than its probe has found", o.rank)
		}
	}
	for id, s := range sends {
		if len(s.op.Buf) == 0 {
			path := [2]int{s.rank, s.op.Peer}
			if all[path]++; !s.lost && s.r.Err == nil {
				sent[path]++
			}
			continue
		}
		if !s.lost && errors.Is(s.r.Err, ErrFull) && received[id] > 0 {
			return fmt.Errorf("rank %d has received message %d, which was refused", s.op.Peer, id)
		}
		if !s.lost && s.r.Err == nil && received[id] == 0 && !gone[s.op.Peer] && !gone[s.rank] {
			return fmt.Errorf("rank %d has sent message %d to rank %d, which does not have it", s.rank, id, s.op.Peer)
		}
	}
	for path, n := range all {
		if got := empty[path]; got > n || got < sent[path] {
			return fmt.Errorf("rank %d has received %d messages of 0 words of rank %d, which has sent %d, %d "+
				"with success", path[1], got, path[0], n, sent[path])
		}
	}
	return nil
}

// checkEnds checks that an operation ended without a result only because its deadline expired, and that nothing is left
// of it.
func (p *program) checkEnds() error {
	cancelled := slices.ContainsFunc(p.posted,
		func(o *posted) bool { return !o.lost && o.op.Kind != OpRecv && o.r.Err != nil })
	for _, o := range p.posted {
		switch {
		case o.lost:
		case o.call != nil && !p.strict: // some rank's deadline ended the call
		case o.r.Err == nil || errors.Is(o.r.Err, context.DeadlineExceeded) && !p.strict:
		case errors.Is(o.r.Err, ErrCancelled) && o.revoke:
		case p.refuses && errors.Is(o.r.Err, ErrFull) && o.op.Kind != OpRecv:
		// its message was refused, or is not received before the end
		case p.floods && errors.Is(o.r.Err, context.DeadlineExceeded):
		case p.ordered && o.op.Kind == OpRecv && cancelled && errors.Is(o.r.Err, handshake.ErrTimeout):
			// The SEND_REQUEST of a cancelled send matched it.
		case p.kind.net.repeat > 0 && o.op.Kind == OpRecv && errors.Is(o.r.Err, handshake.ErrTimeout):
			// A duplicate of a SEND_REQUEST matched it.
		case p.ordered && p.kind.net.loss > 0 && !p.strict && errors.Is(o.r.Err, handshake.ErrTimeout):
			// Each time, some datagram of a long message was lost.
		default:
			return fmt.Errorf("rank %d: an operation with rank %d has failed: %w", o.rank, o.op.Peer, o.r.Err)
		}
	}
	if p.fpga {
		return nil
	}
	for rank, e := range p.cores {
		if e == nil {
			continue
		}
		left := 0
		eachWait(e, func(*Waiting) { left++ })
		if left > 0 || e.busy() {
			return fmt.Errorf("rank %d: all operations are done, but %d wait; busy %v", rank, left, e.busy())
		}
	}
	return nil
}

// firstWindow is the initial window in packets (E28).
const firstWindow = 16

// timedOut returns the number of peers with an expired timeout, and the number of windows smaller than
// the initial one.
func (p *program) timedOut() (peers, halved int) {
	for _, e := range p.cores {
		for peer := range e.peers.created {
			if peer == nil || peer.events[state.EventTimedOut] == 0 {
				continue
			}
			var s state.Peer
			peer.snapshot(&s, p.now)
			peers++
			if s.Extended.Window < firstWindow {
				halved++
			}
		}
	}
	return peers, halved
}
