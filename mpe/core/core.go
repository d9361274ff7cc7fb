package core

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Core is the state of an engine, and what it does for each event: a call, packets, the
// end of what a driver has done for it, or a deadline. It has neither lock nor clock nor
// goroutine, waits for nothing, and draws no random numbers. Its driver begins each
// event with Begin, which gives it the time, makes one event at a time, and ends it with
// End. What it does at once goes through Effects; what can wait until the event ends is in
// the Outcome that End returns.
type Core struct {
	rank int
	cfg  Config
	// observed: the Observer or Calls is notified of every message that ends, but with peers that are unobserved.
	observed bool
	// observesMemory: also with some that messages reach by short headers.
	observesMemory bool
	noTags         bool // some peer's messages carry no tag
	effects        Effects
	out            Outcome

	// at is when the event at hand began.
	at handshake.Instant
	// due is when tick is to be called at the latest, or never, and known, by network, up to when all that had arrived was
	// taken at the last tick.
	due    handshake.Instant
	known  []handshake.Instant
	peers  []*peer
	pairs  handshakeActions
	conns  extendedActions
	nextID handshake.ID
	// timed are the peers that may have a deadline.
	timed []*peer
	drops state.DropCounts // from addresses that are no peer's
	state runState
	// lastDrop is the last of drops, or nil, and lastEnd when an operation of the program last ended, or 0; lastFailed:
	// with an error.
	lastDrop   *lastDrop
	lastEnd    handshake.Instant
	lastFailed bool

	pending  pending
	matching matching
	Probes   Probes
	Rooms    Rooms
	buffers  buffers
	Rests    RestingSends
	// calls has the collective calls under way, and ended those of their messages that have
	// ended. abortsDropped: Close does not wait until this rank's aborts are sent.
	calls         *collective.Executor
	ended         []*Request
	abortsDropped bool
	Reports       Reports
	// recordedCall is what Config.Calls is given.
	recordedCall Call
	// gone: the event at hand ends an operation of a program that is gone.
	gone bool
}

// pending is what the end of an event (flush) has to do.
type pending struct {
	// touched are the peers that it deals with, and accepts the
	// messages whose senders it clears.
	touched []*peer
	accepts []*inbound
	// placements are the peers whose placements it has moved.
	placements []*peer
	// coalesced: packets of some of the touched wait for those of further sends.
	coalesced bool
}

type runState uint8

const (
	running runState = iota
	draining
	lingering
	closed
)

// Rank returns the local rank.
func (e *Core) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *Core) Size() int { return len(e.peers) }

// Begin begins an event.
func (e *Core) Begin(now handshake.Instant) { e.at = now }

// Now is the time of the last event that was given one.
func (e *Core) Now() handshake.Instant { return e.at }

// IsRunning reports whether operations are accepted, and isClosed whether everything has ended.
func (e *Core) IsRunning() bool { return e.state == running }
func (e *Core) IsClosed() bool  { return e.state == closed }

// Quiet reports whether no peer is touched.
func (e *Core) Quiet() bool { return len(e.pending.touched) == 0 }

// End ends an event. Peers whose packets are coalesced stay touched. The driver clears the outcome.
func (e *Core) End() *Outcome {
	if len(e.pending.touched) > 0 && !e.pending.coalesced && e.state != closed {
		e.flush()
	}
	e.out.Deadline, e.out.Coalesced = e.due, e.pending.coalesced
	return &e.out
}

// New makes the core of the rank that cfg describes.
func New(cfg Config, effects Effects) *Core {
	e := new(Core)
	unobserved := 0
	for i := range cfg.Peers {
		if i != cfg.Rank && cfg.Peers[i].Unobserved {
			unobserved++
		}
	}
	e.observed = (cfg.Observer != nil || cfg.Calls != nil) && (unobserved == 0 || unobserved < len(cfg.Peers)-1)
	if cfg.Observer == nil {
		cfg.Observer = nopObserver{}
	}
	e.rank, e.cfg, e.effects, e.due = cfg.Rank, cfg, effects, Never
	e.peers = make([]*peer, len(cfg.Peers))
	e.matching.c, e.Probes.c, e.Rooms.c, e.Rests.c, e.Reports.c = e, e, e, e, e
	e.matching.init(cfg.Limits, len(cfg.Peers))
	e.calls = collective.New(callEngine{e}, len(cfg.Peers), cfg.Collectives)
	room := 0
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		pc.configure(cfg.Rank, rank)
		p := newPeer(e, rank, pc)
		e.peers[rank] = p
		e.noTags = e.noTags || p.noTags()
		if pc.Network.Memory != nil {
			e.observesMemory = e.observesMemory || e.observes(p)
		}
		if x := pc.Extended; x != nil { // the SEND_REQUESTs of other peers are counted in any case
			e.matching.limits.Unexpected += p.extended.conn.Config().Messages
			if x.Room != nil {
				room = max(room, x.Room.Limit())
			}
		}
	}
	e.matching.limits.Unexpected += room
	return e
}

// ReceiveBatch takes a batch of packets.
func (e *Core) ReceiveBatch(network int, batch []RxPacket) {
	if e.state == closed {
		return
	}
	for i := range batch {
		if batch[i].Each > 0 {
			e.receiveAll(network, &batch[i])
			continue
		}
		e.receive(network, &batch[i])
	}
	e.flush()
}

// receive feeds one packet to its peer's state machine.
func (e *Core) receive(network int, a *RxPacket) {
	if a.Kind == RxPublished {
		e.calls.Published(a.Ticket)
		return
	}
	p := e.source(a)
	if p == nil {
		e.drops[state.DropUnknownAddress]++
		if e.lastDrop == nil {
			e.lastDrop = new(lastDrop)
		}
		e.lastDrop.set(e.at, protocol.CloudFPGA, a, &Drop{Reason: state.DropUnknownAddress})
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, Drop{Reason: state.DropUnknownAddress, Packet: a, At: e.at})
		return
	}
	if p.cfg.Network.ID != network {
		// A peer is spoken to over one network; what comes over
		// another one is not from it.
		p.dropped(a, Drop{Reason: state.DropUnexpectedPayload})
		return
	}
	p.receive(a)
}

// receiveAll feeds several datagrams, one by one where they are not the middle of a
// message.
func (e *Core) receiveAll(network int, all *RxPacket) {
	one := &e.pairs.one
	*one = *all
	one.Each = 0
	p := e.source(all)
	for rest := all.Bytes; len(rest) > 0; rest = rest[len(one.Bytes):] {
		one.Bytes = rest[:min(all.Each, len(rest))]
		if p == nil || p.cfg.Network.ID != network || p.handshake == nil || !p.handshake.receiveRun(one, rest, all.Each) {
			e.receive(network, one)
		}
	}
}

// source finds the peer that a packet came from; nil if its address is no peer's.
func (e *Core) source(a *RxPacket) *peer {
	if a.Peer < 0 || a.Peer >= len(e.peers) {
		return nil
	}
	return e.peers[a.Peer]
}

// touch has flush deal with a peer.
func (e *Core) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.pending.touched = append(e.pending.touched, p)
	}
}

// flush ends every event: it clears the senders of matched messages, lets the
// extended peers acknowledge, and notes deadlines. It deals with the touched peers
// only.
func (e *Core) flush() {
	for i := 0; ; {
		if len(e.ended) > 0 || e.calls.Pending() {
			callEngine{e}.advanceCalls()
		}
		if e.Reports.answers {
			e.Reports.answer()
		}
		if len(e.pending.accepts) > 0 {
			e.acceptAll()
			continue
		}
		if i == len(e.pending.touched) {
			break
		}
		p := e.pending.touched[i]
		i++
		if p.extended != nil {
			p.extended.endEvent()
		}
		e.noteDeadline(p)
		p.touched = false
	}
	clear(e.pending.touched)
	e.pending.touched = e.pending.touched[:0]
	e.pending.coalesced = false
	e.matching.inbounds.recycle()
	movePlacements(e)
	if len(e.Rooms.senders) > 0 {
		e.Rooms.wake()
	}
}

// acceptAll clears the senders of messages that receives have matched.
func (e *Core) acceptAll() {
	for i := 0; i < len(e.pending.accepts); i++ {
		in := e.pending.accepts[i]
		e.pending.accepts[i] = nil
		if p := in.p; p != nil {
			p.extended.accept(in) // a handshake has cleared it
		}
	}
	e.pending.accepts = e.pending.accepts[:0]
}

// busy reports whether data is on the move.
func (e *Core) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		return p != nil && p.busy() && !(e.abortsDropped && p.extended != nil && p.extended.onlyAborts())
	})
}

// Drain begins to close: no new operation is accepted, and what has not begun to move ends.
func (e *Core) Drain() {
	e.state = draining
	e.abortQueued(ErrClosed)
	e.flush()
}

// AbortTime is how long a driver waits until aborts of collective calls are sent, if nothing
// else is under way: some of the ranks may be gone.
const AbortTime = 250 * time.Millisecond

// DropAborts: what is closing does not wait any longer for ranks that do not receive aborts.
func (e *Core) DropAborts() {
	if e.state == draining {
		e.abortsDropped = true
		e.flush()
	}
}

// Linger begins to do nothing but to answer peers that do not know that their messages have arrived.
func (e *Core) Linger() {
	e.state = lingering
	for _, p := range e.peers {
		if p != nil {
			if p.extended != nil { // the other profiles have no packet for it
				p.extended.closeSession()
			}
			e.touch(p) // its deadline is another one
		}
	}
	e.flush()
}

// lingers reports whether a peer may still need an answer.
func (e *Core) lingers() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		if p == nil {
			return false
		}
		until, ok := p.lingerUntil()
		return ok && until > e.at
	})
}

// AtRest reports whether there is nothing for which the present part of closing has to wait.
func (e *Core) AtRest() bool {
	if e.state == lingering {
		return !e.lingers()
	}
	return !e.busy()
}

// Shut ends everything that has not.
func (e *Core) Shut() {
	e.state = closed
	for _, p := range e.peers {
		if p != nil {
			p.abort(ErrClosed, true)
		}
	}
	callEngine{e}.advanceCalls() // calls whose messages have ended do, too
}

// Reconfigure is Engine.Reconfigure.
func (e *Core) Reconfigure(peers []Peer) {
	if e.state == closed {
		return
	}
	for rank, p := range e.peers {
		if p == nil {
			continue
		}
		next := &peers[rank]
		p.cfg.Address = next.Address
		p.reconfigure(next)
	}
	e.flush()
}

// PeerFailed is Engine.PeerFailed.
func (e *Core) PeerFailed(rank int, cause error) {
	p, err := e.peers[rank], &PeerFailedError{Rank: rank, Err: cause}
	sends, _ := p.load()
	if e.matching.endPosted(rank, err) == 0 && (sends > 0 || p.sendsDone != p.answered) {
		p.broken = err
	}
}

// Reset is Engine.Reset. A peer of the extended profile that was restarted has a new session.
func (e *Core) Reset(rank int) {
	if l := e.peers[rank].handshake; l != nil {
		l.reset()
	}
}
