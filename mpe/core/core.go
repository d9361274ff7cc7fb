package core

import (
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Core is the state machine of an engine. An event is a call, a batch of packets, a deadline, or the completion of an
// effect. For each event, the driver calls Begin, which sets the time, then one method of the core, and then End. The
// core performs urgent actions through Effects during the event; End returns all others in an Outcome. A Core uses no
// lock, clock, goroutine or random source, and never blocks.
type Core struct {
	rank int
	cfg  Config
	// observed means that the core notifies the Observer or Calls when a message with an observed peer is complete.
	observed bool
	// observesMemory means that at least one observed peer uses short headers.
	observesMemory bool
	noTags         bool // some peer's messages carry no tag
	effects        Effects
	out            Outcome

	// now is the time at which the current event began.
	now handshake.Instant
	// tickDue is the latest time at which the next Tick must occur, or Never. processedUntil holds, for each network,
	// the time up to which all received packets had been processed at the last Tick.
	tickDue        handshake.Instant
	processedUntil []handshake.Instant
	peers          peerTable
	pairActions    handshakeActions
	connActions    extendedActions
	// nextID is the ID of the request posted last.
	nextID handshake.ID
	// deadlinePeers holds every peer with a deadline, and perhaps others.
	deadlinePeers []*peer
	drops         state.DropCounts // of packets from addresses that belong to no peer
	state         runState
	// lastDrop describes the last packet counted in drops; nil if there was none. lastEndAt is the time at which the
	// program's last completed operation ended, or 0; lastFailed means that this operation failed.
	lastDrop   *lastDrop
	lastEndAt  handshake.Instant
	lastFailed bool

	pending        pendingWork
	matching       matching
	Probes         Probes
	BlockedSenders BlockedSenders
	buffers        buffers
	RestingSends   RestingSends
	// calls executes the collective calls. endedMessages holds their completed messages until the calls are notified.
	// abortsDropped means that Close no longer waits until this rank's aborts are sent.
	calls         *collective.Executor
	endedMessages []*Request
	abortsDropped bool
	Reports       Reports
	// Leases leases parts of the core to C code.
	Leases Leases
	// recordedCall is reused for every call of Config.Calls, as its argument.
	recordedCall Call
	// callerGone means that the current event ends an operation of a program that no longer exists.
	callerGone bool
}

// pendingWork is the work left for flush at the end of an event.
type pendingWork struct {
	// touched holds the peers that flush must process. accepts holds the matched messages whose senders flush must
	// clear.
	touched []*peer
	accepts []*inbound
	// placements holds the peers whose placements have changed.
	placements []*peer
	// coalesced means that packets to some touched peers are held back, to be sent together with packets of later
	// sends.
	coalesced bool
}

// runState is a phase in the life of a core. Drain, Linger and Shutdown advance it; it never moves back.
type runState uint8

const (
	// running: operations are accepted.
	running runState = iota
	// draining: new operations fail, and transfers in progress continue.
	draining
	// lingering: the core only answers packets that peers retransmit.
	lingering
	// closed: no operation is pending, and received packets are ignored.
	closed
)

// Rank returns the local rank.
func (e *Core) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *Core) Size() int { return len(e.peers.list) }

// Begin starts an event at the time now.
func (e *Core) Begin(now handshake.Instant) { e.now = now }

// Now returns the time passed to the last Begin.
func (e *Core) Now() handshake.Instant { return e.now }

// IsRunning reports whether the core accepts operations. IsClosed reports whether it is shut down.
func (e *Core) IsRunning() bool { return e.state == running }
func (e *Core) IsClosed() bool  { return e.state == closed }

// IsQuiet reports whether no peer is touched.
func (e *Core) IsQuiet() bool { return len(e.pending.touched) == 0 }

// End ends an event and returns its outcome, which the driver must clear. Peers with coalesced packets stay touched.
func (e *Core) End() *Outcome {
	if len(e.pending.touched) > 0 && !e.pending.coalesced && e.state != closed {
		e.flush()
	}
	e.out.Deadline, e.out.Coalesced = e.tickDue, e.pending.coalesced
	return &e.out
}

// New returns the core of the rank that the configuration cfg describes.
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
	core.peers.init(core, len(cfg.Peers))
	core.matching.core, core.Probes.core, core.BlockedSenders.core, core.RestingSends.core, core.Reports.core = core,
		core, core, core, core
	core.Leases.core = core
	core.matching.init(cfg.Limits, len(cfg.Peers))
	core.calls = collective.New(callEngine{core}, len(cfg.Peers), cfg.Collectives)
	handshakes := limitsCache{}
	room := 0
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		if pc.Extended == nil {
			core.peers.limits[rank] = handshakes.find(&pc.Handshake)
			core.noTags = core.noTags || core.peers.limits[rank].limits.NoTags
			if pc.Keeper != nil {
				core.peers.at(rank) // restores its state
			}
			continue
		}
		p := core.peers.at(rank)
		core.peers.limits[rank] = p.wireLimits
		if pc.Network.Memory != nil {
			core.observesMemory = core.observesMemory || core.observes(p)
		}
		// matching.init counts one SEND_REQUEST per rank
		core.matching.limits.Unexpected += p.extended.conn.Config().Messages
		if pc.Extended.CreditPool != nil {
			room = max(room, pc.Extended.CreditPool.Limit())
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

// receive passes one packet to its peer's state machine.
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
		// A peer is reachable over one network only, so a packet from another network cannot be from this peer.
		p.reportDrop(packet, Drop{Reason: state.DropUnexpectedPayload})
		return
	}
	p.receive(packet)
}

// receiveAll passes several datagrams to the state machine of their peer. It passes consecutive datagrams from the
// middle of a message all at once, and all others one by one.
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
	if a.Peer < 0 || a.Peer >= len(e.peers.list) {
		return nil
	}
	return e.peers.at(a.Peer)
}

// touch makes flush process a peer.
func (e *Core) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.pending.touched = append(e.pending.touched, p)
	}
}

// flush runs at the end of every event: it clears the senders of matched messages, makes extended links send
// acknowledgements, and updates deadlines. It processes touched peers only.
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

// acceptAll clears the senders of the messages that receives have matched during the event.
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
	for p := range e.peers.created {
		if p.busy() && !(e.abortsDropped && p.extended != nil && p.extended.hasOnlyAborts()) {
			return true
		}
	}
	return false
}

// Drain is the first phase of closing: it refuses new operations, and fails pending operations whose data transfer has
// not begun.
func (e *Core) Drain() {
	e.state = draining
	e.abortQueued(ErrClosed)
	e.flush()
}

// AbortTime limits how long a closing driver waits for aborts of collective calls to be acknowledged while nothing else
// is in flight: some of the ranks may no longer exist.
const AbortTime = 250 * time.Millisecond

// DropAborts makes a draining core stop waiting for ranks that do not acknowledge aborts.
func (e *Core) DropAborts() {
	if e.state == draining {
		e.abortsDropped = true
		e.flush()
	}
}

// Linger is the second phase of closing: the core only answers peers that retransmit because an acknowledgement was
// lost.
func (e *Core) Linger() {
	e.state = lingering
	for p := range e.peers.created {
		if p.extended != nil { // the other profiles cannot announce a shutdown
			p.extended.closeSession()
		}
		e.touch(p) // its deadline changes
	}
	e.flush()
}

// mustLinger reports whether some peer may still need an answer to a retransmission.
func (e *Core) mustLinger() bool {
	for p := range e.peers.created {
		if until, ok := p.lingerUntil(); ok && until > e.now {
			return true
		}
	}
	return false
}

// IsIdle reports whether the current phase of closing is done.
func (e *Core) IsIdle() bool {
	if e.state == lingering {
		return !e.mustLinger()
	}
	return !e.busy()
}

// Shutdown is the last phase of closing: it fails all pending operations with ErrClosed.
func (e *Core) Shutdown() {
	e.state = closed
	for p := range e.peers.created {
		p.abort(ErrClosed, true)
	}
	callEngine{e}.advanceCalls() // also ends calls whose messages are complete
}

// Reconfigure implements Engine.Reconfigure.
func (e *Core) Reconfigure(peers []Peer) {
	if e.state == closed {
		return
	}
	for rank := range e.peers.list {
		p, next, cfg := e.peers.list[rank], &peers[rank], &e.cfg.Peers[rank]
		if p == nil {
			if rank == e.rank || cfg.Address == next.Address && cfg.Handshake == next.Handshake {
				continue
			}
			p = e.peers.at(rank)
		}
		p.cfg.Address = next.Address
		p.reconfigure(next)
	}
	e.flush()
}

// PeerFailed implements Engine.PeerFailed.
func (e *Core) PeerFailed(rank int, cause error) {
	p, err := e.peers.at(rank), &PeerFailedError{Rank: rank, Err: cause}
	sends, _ := p.pendingLoad()
	if e.matching.endPosted(rank, err) == 0 && (sends > 0 || p.sendsDone != p.sendsAtAnswer) {
		p.kernelErr = err
	}
}

// Reset implements Engine.Reset. It is a no-op for an extended peer, whose restart is visible as a new session.
func (e *Core) Reset(rank int) {
	if l := e.peers.at(rank).handshake; l != nil {
		l.reset()
	}
}
