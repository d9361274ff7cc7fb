package core

import (
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Core is the state machine of an engine. An event is a call, a batch of packets, a deadline, or the completion of an
// effect. The driver starts an event with Begin, which sets the time, makes one call of the core, and ends the event
// with End. Actions that cannot wait go through Effects; the rest is in the Outcome that End returns. A Core has no
// lock, clock or goroutine, never blocks, and draws no random numbers.
type Core struct {
	rank int
	cfg  Config
	// observed means that the Observer or Calls is notified of every completed message, except with
	// unobserved peers.
	observed bool
	// observesMemory means that the Observer or Calls is notified of messages of some peers that use short headers.
	observesMemory bool
	noTags         bool // the messages of some peer carry no tag
	effects        Effects
	out            Outcome

	// now is the time at which the current event began.
	now handshake.Instant
	// tickDue is the time by which the next Tick must come, or Never. processedUntil[network] is the time up to which
	// all packets received from a network had been processed at the last Tick.
	tickDue        handshake.Instant
	processedUntil []handshake.Instant
	peers          []*peer
	pairActions    handshakeActions
	connActions    extendedActions
	nextID         handshake.ID
	// deadlinePeers may have a deadline.
	deadlinePeers []*peer
	drops         state.DropCounts // of packets from addresses that belong to no peer
	state         runState
	// lastDrop is the last drop counted in drops, or nil. lastEndAt is the time at which an operation of the
	// program last ended, or 0; lastFailed means that it failed.
	lastDrop   *lastDrop
	lastEndAt  handshake.Instant
	lastFailed bool

	pending        pendingWork
	matching       matching
	Probes         Probes
	BlockedSenders BlockedSenders
	buffers        buffers
	RestingSends   RestingSends
	// calls holds the pending collective calls, and endedMessages holds their completed messages. abortsDropped means
	// that Close no longer waits until this rank's aborts are sent.
	calls         *collective.Executor
	endedMessages []*Request
	abortsDropped bool
	Reports       Reports
	// recordedCall is reused for the argument of Config.Calls.
	recordedCall Call
	// callerGone means that the current event ends an operation of a program that no longer exists.
	callerGone bool
}

// pendingWork is the work of flush at the end of an event.
type pendingWork struct {
	// touched holds the peers that flush has to process. accepts holds the messages whose senders it has to clear.
	touched []*peer
	accepts []*inbound
	// placements are the peers whose placements have changed.
	placements []*peer
	// coalesced means that packets of some touched peers are held back, to be sent together with packets of later
	// sends.
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

// Begin starts an event at the time now.
func (e *Core) Begin(now handshake.Instant) { e.now = now }

// Now returns the time of the last event that was started with a time.
func (e *Core) Now() handshake.Instant { return e.now }

// IsRunning reports whether operations are accepted. IsClosed reports whether the core is shut down.
func (e *Core) IsRunning() bool { return e.state == running }
func (e *Core) IsClosed() bool  { return e.state == closed }

// IsQuiet reports whether no peer is touched.
func (e *Core) IsQuiet() bool { return len(e.pending.touched) == 0 }

// End ends an event. Peers whose packets are coalesced stay touched. The driver clears the outcome.
func (e *Core) End() *Outcome {
	if len(e.pending.touched) > 0 && !e.pending.coalesced && e.state != closed {
		e.flush()
	}
	e.out.Deadline, e.out.Coalesced = e.tickDue, e.pending.coalesced
	return &e.out
}

// New returns the core of the rank that cfg describes.
func New(cfg Config, effects Effects) *Core {
	core := new(Core)
	unobserved := 0
	for i := range cfg.Peers {
		if i != cfg.Rank && cfg.Peers[i].Unobserved {
			unobserved++
		}
	}
	core.observed = (cfg.Observer != nil || cfg.Calls != nil) && (unobserved == 0 || unobserved < len(cfg.Peers)-1)
	if cfg.Observer == nil {
		cfg.Observer = nopObserver{}
	}
	core.rank, core.cfg, core.effects, core.tickDue = cfg.Rank, cfg, effects, Never
	core.peers = make([]*peer, len(cfg.Peers))
	core.matching.core, core.Probes.core, core.BlockedSenders.core, core.RestingSends.core, core.Reports.core = core,
		core, core, core, core
	core.matching.init(cfg.Limits, len(cfg.Peers))
	core.calls = collective.New(callEngine{core}, len(cfg.Peers), cfg.Collectives)
	room := 0
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		pc.configure(cfg.Rank, rank)
		p := newPeer(core, rank, pc)
		core.peers[rank] = p
		core.noTags = core.noTags || p.noTags()
		if pc.Network.Memory != nil {
			core.observesMemory = core.observesMemory || core.observes(p)
		}
		if x := pc.Extended; x != nil { // SEND_REQUESTs of other peers are counted in any case
			core.matching.limits.Unexpected += p.extended.conn.Config().Messages
			if x.CreditPool != nil {
				room = max(room, x.CreditPool.Limit())
			}
		}
	}
	core.matching.limits.Unexpected += room
	return core
}

// ReceiveBatch processes a batch of packets from a network.
func (e *Core) ReceiveBatch(network int, batch []RxPacket) {
	if e.state == closed {
		return
	}
	for i := range batch {
		if batch[i].DatagramLen > 0 {
			e.receiveAll(network, &batch[i])
			continue
		}
		e.receive(network, &batch[i])
	}
	e.flush()
}

// receive feeds one packet to its peer's state machine.
func (e *Core) receive(network int, packet *RxPacket) {
	if packet.Kind == RxPublished {
		e.calls.SlotPublished(packet.Ticket)
		return
	}
	p := e.sourcePeer(packet)
	if p == nil {
		e.drops[state.DropUnknownAddress]++
		if e.lastDrop == nil {
			e.lastDrop = new(lastDrop)
		}
		e.lastDrop.set(e.now, protocol.CloudFPGA, packet, &Drop{Reason: state.DropUnknownAddress})
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, Drop{Reason: state.DropUnknownAddress, Packet: packet, At: e.now})
		return
	}
	if p.cfg.Network.ID != network {
		// Each peer is reached over one network; a packet from another network is not from this peer.
		p.reportDrop(packet, Drop{Reason: state.DropUnexpectedPayload})
		return
	}
	p.receive(packet)
}

// receiveAll feeds several datagrams to their peer. It feeds consecutive datagrams from the middle of a message
// together, and other datagrams one by one.
func (e *Core) receiveAll(network int, all *RxPacket) {
	one := &e.pairActions.one
	*one = *all
	one.DatagramLen = 0
	p := e.sourcePeer(all)
	for rest := all.Bytes; len(rest) > 0; rest = rest[len(one.Bytes):] {
		one.Bytes = rest[:min(all.DatagramLen, len(rest))]
		if p == nil || p.cfg.Network.ID != network || p.handshake == nil ||
			!p.handshake.receiveRun(one, rest, all.DatagramLen) {
			e.receive(network, one)
		}
	}
}

// sourcePeer returns the peer that sent a packet, or nil if its address belongs to no peer.
func (e *Core) sourcePeer(a *RxPacket) *peer {
	if a.Peer < 0 || a.Peer >= len(e.peers) {
		return nil
	}
	return e.peers[a.Peer]
}

// touch makes flush process a peer.
func (e *Core) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.pending.touched = append(e.pending.touched, p)
	}
}

// flush ends every event: it clears the senders of matched messages, makes extended peers acknowledge, and
// updates deadlines. It processes touched peers only.
func (e *Core) flush() {
	for i := 0; ; {
		if len(e.endedMessages) > 0 || e.calls.Pending() {
			callEngine{e}.advanceCalls()
		}
		if e.Reports.answerDue {
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
	if len(e.BlockedSenders.senders) > 0 {
		e.BlockedSenders.wake()
	}
}

// acceptAll clears the senders of messages that receives have matched.
func (e *Core) acceptAll() {
	for i := 0; i < len(e.pending.accepts); i++ {
		in := e.pending.accepts[i]
		e.pending.accepts[i] = nil
		if p := in.p; p != nil {
			p.extended.accept(in) // a handshake has already cleared its sender
		}
	}
	e.pending.accepts = e.pending.accepts[:0]
}

// busy reports whether any peer has data in flight.
func (e *Core) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		return p != nil && p.busy() && !(e.abortsDropped && p.extended != nil && p.extended.hasOnlyAborts())
	})
}

// Drain starts to close the core: it refuses new operations, and pending operations that have not begun to transfer
// data fail.
func (e *Core) Drain() {
	e.state = draining
	e.abortQueued(ErrClosed)
	e.flush()
}

// AbortTime is the maximum time that a closing driver waits for the aborts of collective calls to be sent, if nothing
// else is in flight. The wait is limited because some of the ranks may no longer exist.
const AbortTime = 250 * time.Millisecond

// DropAborts ends the wait of a draining core for ranks that do not acknowledge aborts.
func (e *Core) DropAborts() {
	if e.state == draining {
		e.abortsDropped = true
		e.flush()
	}
}

// Linger continues to close the core: it only answers peers that retransmit because an acknowledgement was
// lost.
func (e *Core) Linger() {
	e.state = lingering
	for _, p := range e.peers {
		if p != nil {
			if p.extended != nil { // the other profiles have no packet for it
				p.extended.closeSession()
			}
			e.touch(p) // its deadline changes
		}
	}
	e.flush()
}

// mustLinger reports whether a peer may still need an answer.
func (e *Core) mustLinger() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool {
		if p == nil {
			return false
		}
		until, ok := p.lingerUntil()
		return ok && until > e.now
	})
}

// IsIdle reports whether the current phase of closing is done.
func (e *Core) IsIdle() bool {
	if e.state == lingering {
		return !e.mustLinger()
	}
	return !e.busy()
}

// Shutdown ends everything that is still pending.
func (e *Core) Shutdown() {
	e.state = closed
	for _, p := range e.peers {
		if p != nil {
			p.abort(ErrClosed, true)
		}
	}
	callEngine{e}.advanceCalls() // also end calls whose messages are done
}

// Reconfigure implements Engine.Reconfigure.
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

// PeerFailed implements Engine.PeerFailed.
func (e *Core) PeerFailed(rank int, cause error) {
	p, err := e.peers[rank], &PeerFailedError{Rank: rank, Err: cause}
	sends, _ := p.pendingLoad()
	if e.matching.endPosted(rank, err) == 0 && (sends > 0 || p.sendsDone != p.sendsAtAnswer) {
		p.kernelErr = err
	}
}

// Reset implements Engine.Reset. An extended peer that was restarted has a new session and needs no reset.
func (e *Core) Reset(rank int) {
	if l := e.peers[rank].handshake; l != nil {
		l.reset()
	}
}
