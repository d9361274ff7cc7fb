package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is what an engine keeps about one remote rank, whatever its profile. The engine's
// lock guards it.
type peer struct {
	link
	e    *core
	rank int
	cfg  Peer
	tr   Transport
	// known is up to when all that had arrived over tr was taken; nil if that is always now.
	known *handshake.Instant
	// touched: an event has reached its state machine, so flush has to read its deadline.
	// timed: it is among the engine's timed.
	touched, timed bool
	// placed: its transport can put long messages where they belong, and placement is where.
	placed    bool
	placement placement
	// limits is what its profile does not carry, and unlimited up to how many bytes it carries all messages, or -1.
	limits    PeerInfo
	unlimited int
	// wire is what collective calls depend on of it.
	wire collective.Wire
	// burst counts the sends posted since anything else has happened.
	burst int
	// refusedAt is when a message of the program was refused, as the peer had no room for it, unless a later one was
	// accepted; otherwise 0.
	refusedAt handshake.Instant

	peerCounts
	sendErr error // the last error of the transport, until a send succeeds
	// broken is the failure of the peer's kernel that the next receive ends with, unless a message comes before.
	// answered is sendsDone when the last message of the peer arrived.
	broken   error
	answered uint64
	// heard is when the last packet arrived, or 0, and lastDrop the last one that was dropped, or nil.
	heard    handshake.Instant
	lastDrop *lastDrop
	// unreachableAt is when an operation or the link last ended because the peer did not answer, or 0.
	unreachableAt handshake.Instant
}

// peerCounts counts what every kind of peer has in common, since New.
type peerCounts struct {
	packetsOut                    [NumTypes]uint64
	packetsIn, bytesIn, bytesOut  uint64
	drops                         DropCounts
	events                        EventCounts
	sendsDone, recvsDone, failed  uint64
	sentBytes, recvBytes          uint64 // payload of sendsDone and recvsDone
	takenOver, takenOverRemaining uint64 // messages that a receive took over while they arrived
}

// link is what the engine does with a peer. handshakeLink implements it for the cloudfpga
// and v0.9 profiles, extendedLink for the extended one; nothing outside the two asks which
// of them a peer has. Each reaches its state machine for an event by a method that marks
// the peer as touched, because any event may change the deadline: the end of the event
// (flush, which unlock calls if nothing else has) arms the timer for the new one.
type link interface {
	// receive feeds a packet to the state machine.
	receive(a *RxPacket)
	// receiveRun feeds the datagrams at the beginning of rest, each of the given size,
	// that continue a message, and sets a.Bytes to them. It reports false, and does
	// nothing, if the first does not.
	receiveRun(a *RxPacket, rest []byte, each int) bool
	// send starts a send. It reports whether its packets may wait for those of further
	// sends, which blocking forbids.
	send(r *Request, blocking bool) (coalesced bool)
	// matched hands a message of the peer to the receive that matches it, and carryOut
	// performs the actions that this has brought about.
	matched(in *inbound, r *Request)
	carryOut()
	// accept lets the sender of a matched message send it.
	accept(in *inbound)
	// cancelSend and cancelRecv cancel a request if it is not too late; the latter's
	// message is in.p's. A peer that knows of a send may be asked to cancel it; the
	// request then ends when it has answered.
	cancelSend(r *Request) bool
	cancelRecv(r *Request) bool
	// detachSend and detachRecv give the transfer of a request that cannot be cancelled
	// a buffer of its own, as buffers.own does.
	detachSend(r *Request, keep Keep)
	detachRecv(r *Request, keep Keep)
	// discardRecv is detachRecv of a message that nothing else may receive.
	discardRecv(r *Request, keep Keep)
	// leaveRecv notes that a receive which the peer's next message may be for was cancelled as its program is gone, and
	// programEnded that all of a program's operations were: the rank is the next one's. Clean is as in
	// Engine.ProgramEnded.
	leaveRecv()
	programEnded(clean bool)
	// abortUnsent ends the sends of which the peer knows nothing; abortAll ends
	// everything.
	abortUnsent(err error)
	abortAll(err error)
	// tick acts on deadlines up to horizon, and endEvent sends what the event at hand
	// has queued.
	tick(horizon handshake.Instant)
	endEvent()
	// closeSession reports to the peer that the rank shuts down. Nothing is sent or received any more, but what the peer
	// retransmits until lingerUntil is answered.
	closeSession()
	// reconfigure and reset are Engine.Reconfigure and Engine.Reset for the peer.
	reconfigure(next *Peer)
	reset()

	// Questions, which change nothing.

	profile() protocol.Profile
	// describe fills in what the profile does not carry.
	describe(info *PeerInfo)
	// check refuses an operation that the profile cannot carry.
	check(op Operation) error
	// deadline is the next one.
	deadline() (handshake.Instant, bool)
	// lingerUntil returns until when the peer may still need an answer to what has arrived, and false if it does not.
	lingerUntil() (handshake.Instant, bool)
	// deadEnd returns why the peer cannot go on, or nil.
	deadEnd() error
	// connected reports whether there is a connection to the peer, of a transport that has any.
	connected() bool
	// busy reports whether something is under way that Close has to wait for. A receive
	// that waits for a message, and a send that waits for its receive, have not begun to
	// move data and may wait forever.
	busy() bool
	// unexpectedLimit is how many messages the peer may have unexpected here.
	unexpectedLimit() int
	// sendWaits yields the sends that the peer has, from the oldest on and those that rest last, and recvWaits the
	// receives that its messages have matched.
	sendWaits(yield func(*Waiting) bool)
	recvWaits(yield func(*Waiting) bool)
	// explain puts a wait into words, as of now.
	explain(w *Waiting, now handshake.Instant) string
	counters(c *PeerCounters)
	// sends counts the sends that have not ended.
	sends() int
	snapshot(s *PeerSnapshot, now handshake.Instant)

	engineMessages
}

// engineMessages is what collective calls need of a peer beside requests. Only peers whose
// profile carries communicators have it; the others answer with zero values.
type engineMessages interface {
	// sendInternal sends a message of the engine's own. o, if not nil, is to be
	// confirmed when it has ended.
	sendInternal(comm, tag uint32, payload []byte, o *collective.Ordering)
	// goesEagerly reports whether a message of that length is sent without being asked for.
	goesEagerly(length int64) bool
	// extend lets a send whose payload arrives bit by bit go on to that many bytes.
	extend(r *Request, bytes int64)
	// abortSend ends such a send whose payload will not arrive.
	abortSend(r *Request)
	// unsent returns how many bytes of messages there are of which not all was sent, about.
	unsent() int
	// retractAborts cancels reports of failed calls that bear no epoch and of which
	// nothing was sent.
	retractAborts()
	// onlyAborts reports whether nothing but reports of failed calls is under way.
	onlyAborts() bool
	// singleCopy reports whether payload is copied once, between the ranks' memories.
	singleCopy() bool
}

func newPeer(e *core, rank int, cfg Peer) (*peer, error) {
	p := &peer{e: e, rank: rank, cfg: cfg, tr: cfg.Transport, unlimited: -1}
	_, p.placed = cfg.Transport.(DirectPlacer)
	if cfg.Extended == nil {
		p.link = newHandshakeLink(p, cfg)
	} else {
		l, err := newExtendedLink(p, cfg)
		if err != nil {
			return nil, err
		}
		p.link = l
	}
	p.describe(&p.limits)
	p.wire, _ = WireOf(p.limits, nil)
	p.wire.Profile, p.wire.SingleCopy = p.profile().String(), p.singleCopy()
	if b, ok := cfg.Transport.(SharedTransport); ok {
		p.wire.Shared, e.shared = true, b
	}
	return p, nil
}

// configure sets what Config leaves to the engine: the ranks and the transport's nature.
func (cfg *Peer) configure(local, remote int) {
	cfg.Handshake.Local, cfg.Handshake.Remote = uint32(local), uint32(remote)
	cfg.Handshake.Reliable = cfg.Transport.Reliable()
	if cfg.Extended != nil {
		x := *cfg.Extended
		x.Local, x.Remote, x.Reliable = uint32(local), uint32(remote), cfg.Transport.Reliable()
		_, x.ShortHeaders = cfg.Transport.(ShortTransport)
		cfg.Extended = &x
	}
}

// horizon is the time up to which everything that has arrived from the peer is known to
// have been taken: a time-out must not expire before a packet that is there is read.
func (p *peer) horizon(now handshake.Instant) handshake.Instant {
	if p.known != nil {
		return *p.known
	}
	return now
}

// noTags reports whether the peer's messages carry no tag. A nil peer is this
// rank or any.
func (p *peer) noTags() bool { return p != nil && p.limits.NoTags }

// checkRank reports that a rank is not in the cluster.
func (e *core) checkRank(rank int) error {
	if rank < 0 || rank >= len(e.peers) {
		return fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, ErrRank, len(e.peers)-1)
	}
	return nil
}

func (p *peer) received(b []byte) {
	p.heard = p.e.at
	p.packetsIn++
	p.bytesIn += uint64(len(b))
}

// receivedAll is received for datagrams of which each has so many bytes.
func (p *peer) receivedAll(bytes, each int) {
	p.heard = p.e.at
	p.packetsIn += uint64((bytes + each - 1) / each)
	p.bytesIn += uint64(bytes)
}

// silent reports whether the peer was unreachable, and no packet of it has arrived since.
func (p *peer) silent() bool { return p.unreachableAt > 0 && p.heard < p.unreachableAt }

func (p *peer) sent(t protocol.Type, bytes int) {
	p.packetsOut[t]++
	p.bytesOut += uint64(bytes)
}

// sendResult notes what the transport has answered to a send.
func (p *peer) sendResult(err error) {
	p.sendErr = err
	if err != nil {
		p.e.cfg.Observer.TransportError(p.e.rank, err)
	}
}

// dropped counts and reports a packet that was not used. a is nil if a deadline brought
// that about.
func (p *peer) dropped(a *RxPacket, d Drop) {
	p.drops[d.Reason]++
	if p.lastDrop == nil {
		p.lastDrop = new(lastDrop)
	}
	p.lastDrop.set(p.e.at, p.profile(), a, &d)
	d.Packet, d.At = a, p.e.at
	p.e.cfg.Observer.Dropped(p.e.rank, p.rank, d)
}

// noted counts and reports an event.
func (p *peer) noted(n Note) {
	p.events[n.Event]++
	if n.Event == EventUnreachable {
		p.unreachableAt = p.e.at
	}
	n.At = p.e.at
	p.e.cfg.Observer.Noted(p.e.rank, p.rank, n)
}

var (
	_ link = (*handshakeLink)(nil)
	_ link = (*extendedLink)(nil)
)

// peerInfo is Device.Peer.
func (e *core) peerInfo(rank int) (PeerInfo, error) {
	if err := e.checkRank(rank); err != nil {
		return PeerInfo{}, err
	}
	if rank == e.rank {
		return PeerInfo{Profile: "self"}, nil
	}
	p := e.peers[rank]
	info := p.limits
	info.Profile, info.Kind, info.Address = p.profile().String(), p.cfg.Kind, p.cfg.Address
	return info, nil
}
