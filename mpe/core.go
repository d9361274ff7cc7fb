package mpe

import (
	"fmt"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// core is the state of an engine, and what it does for each event: a call, packets, the
// end of what a driver has done for it, or a deadline. It has neither lock nor clock nor
// goroutine, waits for nothing, and draws no random numbers. Its driver begins each
// event with begin, which gives it the time, makes one event at a time, and ends it with
// end. What it gives back: packets, to the transports; requests that have ended, by
// in finished; the time of the next tick, in due; and what takes long, to its driver.
type core struct {
	rank int
	cfg  Config
	// observed: the Observer or Calls is notified of every message that ends, but with peers that are unobserved.
	observed bool
	// observesMemory: also with some that messages reach by short headers.
	observesMemory bool
	noTags         bool // some peer's messages carry no tag
	driver         driver

	// at is when the event at hand began.
	at handshake.Instant
	// due is when tick is to be called at the latest, or never.
	due    handshake.Instant
	peers  []*peer
	pairs  handshakeActions
	conns  extendedActions
	nextID handshake.ID
	// timed are the peers that may have a deadline.
	timed []*peer
	drops DropCounts // from addresses that are no peer's
	state runState
	// lastDrop is the last of drops, or nil, and lastEnd when an operation of the program last ended, or 0.
	lastDrop *lastDrop
	lastEnd  handshake.Instant

	pending  pending
	inbounds inboundPool
	matchers matchers
	probes   []*probe
	senders  []*sender
	claims   int32 // the last tag of a message that was claimed
	buffers  buffers
	rests    restingSends
	// calls has the collective calls under way, and ended those of their messages that have
	// ended. abortsDropped: Close does not wait until this rank's aborts are sent.
	calls         *collective.Executor
	shared        collective.SharedBuffers // or nil
	ended         []*request
	abortsDropped bool
	// finished are the other requests that have ended in the event at hand.
	finished []*request
	reports  reports
	// recordedCall is what Config.Calls is given.
	recordedCall Call
	// gone: the event at hand ends an operation of a program that is gone.
	gone bool
	// acksDue: the driver is to poll soon, as its caller may not.
	acksDue bool
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

// driver does for a core what takes long, and what concerns threads of execution. What it
// reports later is an event of its own.
type driver interface {
	// sendHeader sends a packet of a handshake, in order with the other packets to the peer.
	sendHeader(l *handshakeLink, header []byte) error
	// sendData sends a DATA message, or begins to: then sent is false, and dataSent is called
	// when the network has taken it. Otherwise at is when it had. The payload is not needed
	// when it returns.
	sendData(l *handshakeLink, id handshake.ID, header, payload []byte) (at handshake.Instant, sent bool, err error)
	// connected notes that a connection to the peer was made anew: what waits to be sent over
	// the old one is dropped.
	connected(l *handshakeLink)
	// place has the transport of a peer put payload where it belongs; one without Buf ends that.
	// What has been put there until revoke is called counts as lost.
	place(at Placement)
	revoke(peer int)
	// compute calls a user's function, and then computed.
	compute(j collective.Job)
	// report has make make a report, and then calls reportMade.
	report(make func() []byte)
	// random returns 64 random bits.
	random() uint64
	// newRequest returns a request that is empty but for its owner, and release takes one back that nothing refers to.
	newRequest() *request
	release(r *request)
}

// Rank returns the local rank.
func (e *core) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *core) Size() int { return len(e.peers) }

// begin begins an event.
func (e *core) begin(now handshake.Instant) { e.at = now }

// end ends an event, if that was not done. Peers whose packets are coalesced stay touched.
func (e *core) end() {
	if len(e.pending.touched) > 0 && !e.pending.coalesced && e.state != closed {
		e.flush()
	}
}

// init makes the core of the rank that cfg describes. It reports each transport once.
func (e *core) init(cfg Config, d driver) ([]Transport, error) {
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
	e.rank, e.cfg, e.driver, e.due = cfg.Rank, cfg, d, never
	e.peers = make([]*peer, len(cfg.Peers))
	e.matchers.init(cfg.Limits, len(cfg.Peers))
	cfg.Collectives.Oversubscribed = cfg.Oversubscribed
	e.calls = collective.New(callEngine{e}, len(cfg.Peers), cfg.Collectives)
	var transports []Transport
	room := 0
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		if pc.Transport == nil {
			return nil, fmt.Errorf("peer %d has no transport", rank)
		}
		pc.configure(cfg.Rank, rank)
		p, err := newPeer(e, rank, pc)
		if err != nil {
			return nil, err
		}
		e.peers[rank] = p
		e.noTags = e.noTags || p.noTags()
		if _, ok := pc.Transport.(ShortTransport); ok {
			e.observesMemory = e.observesMemory || e.observes(p)
		}
		if x := pc.Extended; x != nil { // the SEND_REQUESTs of other peers are counted in any case
			e.matchers.limits.Unexpected += p.extended.conn.Config().Messages
			if x.Room != nil {
				room = max(room, x.Room.Limit())
			}
		}
		if !slices.Contains(transports, pc.Transport) {
			transports = append(transports, pc.Transport)
		}
	}
	e.matchers.limits.Unexpected += room
	return transports, nil
}

// receiveBatch takes a batch of packets.
func (e *core) receiveBatch(tr Transport, batch []RxPacket) {
	if e.state == closed {
		return
	}
	for i := range batch {
		if batch[i].Each > 0 {
			e.receiveAll(tr, &batch[i])
			continue
		}
		e.receive(tr, &batch[i])
	}
	e.flush()
}

// receive feeds one packet to its peer's state machine.
func (e *core) receive(tr Transport, a *RxPacket) {
	if a.Kind == RxPublished {
		e.calls.Published(a.Ticket)
		return
	}
	p := e.source(a)
	if p == nil {
		e.drops[DropUnknownAddress]++
		if e.lastDrop == nil {
			e.lastDrop = new(lastDrop)
		}
		e.lastDrop.set(e.at, protocol.CloudFPGA, a, &Drop{Reason: DropUnknownAddress})
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, Drop{Reason: DropUnknownAddress, Packet: a, At: e.at})
		return
	}
	if p.tr != tr {
		// A peer is spoken to over one transport; what comes over
		// another one is not from it.
		p.dropped(a, Drop{Reason: DropUnexpectedPayload})
		return
	}
	p.receive(a)
}

// receiveAll feeds several datagrams, one by one where they are not the middle of a
// message.
func (e *core) receiveAll(tr Transport, all *RxPacket) {
	one := &e.pairs.one
	*one = *all
	one.Each = 0
	p := e.source(all)
	for rest := all.Bytes; len(rest) > 0; rest = rest[len(one.Bytes):] {
		one.Bytes = rest[:min(all.Each, len(rest))]
		if p == nil || p.tr != tr || p.handshake == nil || !p.handshake.receiveRun(one, rest, all.Each) {
			e.receive(tr, one)
		}
	}
}

// source finds the peer that a packet came from; nil if its address is no peer's.
func (e *core) source(a *RxPacket) *peer {
	if a.Peer < 0 || a.Peer >= len(e.peers) {
		return nil
	}
	return e.peers[a.Peer]
}

// touch has flush deal with a peer.
func (e *core) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.pending.touched = append(e.pending.touched, p)
	}
}

// flush ends every event: it clears the senders of matched messages, lets the
// extended peers acknowledge, and notes deadlines. It deals with the touched peers
// only.
func (e *core) flush() {
	for i := 0; ; {
		if len(e.ended) > 0 || e.calls.Pending() {
			e.advanceCalls()
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
	e.inbounds.recycle()
	e.movePlacements()
	if len(e.senders) > 0 {
		e.wakeSenders()
	}
}

// acceptAll clears the senders of messages that receives have matched.
func (e *core) acceptAll() {
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
func (e *core) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		return p != nil && p.busy() && !(e.abortsDropped && p.extended != nil && p.extended.onlyAborts())
	})
}

// drain begins to close: no new operation is accepted, and what has not begun to move ends.
func (e *core) drain() {
	e.state = draining
	e.abortQueued(ErrClosed)
	e.flush()
}

// abortTime is how long a driver waits until aborts of collective calls are sent, if nothing
// else is under way: some of the ranks may be gone.
const abortTime = 250 * time.Millisecond

// dropAborts: what is closing does not wait any longer for ranks that do not receive aborts.
func (e *core) dropAborts() {
	if e.state == draining {
		e.abortsDropped = true
		e.flush()
	}
}

// linger begins to do nothing but to answer peers that do not know that their messages have arrived.
func (e *core) linger() {
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
func (e *core) lingers() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		if p == nil {
			return false
		}
		until, ok := p.lingerUntil()
		return ok && until > e.at
	})
}

// atRest reports whether there is nothing for which the present part of closing has to wait.
func (e *core) atRest() bool {
	if e.state == lingering {
		return !e.lingers()
	}
	return !e.busy()
}

// shut ends everything that has not.
func (e *core) shut() {
	e.state = closed
	for _, p := range e.peers {
		if p != nil {
			p.abort(ErrClosed, true)
		}
	}
	e.advanceCalls() // calls whose messages have ended do, too
}

// reconfigure is Engine.Reconfigure.
func (e *core) reconfigure(peers []Peer) {
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

// reset is Engine.Reset. A peer of the extended profile that was restarted has a new session.
func (e *core) reset(rank int) {
	if l := e.peers[rank].handshake; l != nil {
		l.reset()
	}
}
