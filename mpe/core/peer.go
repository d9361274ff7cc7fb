package core

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is what an engine keeps about one remote rank, whatever its profile. The engine's
// lock guards it.
type peer struct {
	link
	// handshake and extended are the link, of which one is nil: for what only one kind of peer has.
	handshake *handshakeLink
	extended  *extendedLink

	e    *Core
	rank int
	cfg  Peer
	// touched: an event has reached its state machine, so flush has to read its deadline.
	// timed: it is among the engine's timed.
	touched, timed bool
	// placed: its network can put long messages where they belong, and placement is where.
	placed    bool
	placement placement
	profile   protocol.Profile
	// limits is what its profile does not carry, longest the length of its longest message in bytes, and unlimited up to
	// how many bytes it carries all messages, or -1.
	limits    PeerInfo
	longest   int64
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
	packetsOut                    [state.NumTypes]uint64
	packetsIn, bytesIn, bytesOut  uint64
	drops                         state.DropCounts
	events                        state.EventCounts
	sendsDone, recvsDone, failed  uint64
	sentBytes, recvBytes          uint64 // payload of sendsDone and recvsDone
	takenOver, takenOverRemaining uint64 // messages that a receive took over while they arrived
}

// link is what the engine does with a peer. handshakeLink implements it for the cloudfpga
// and v0.9 profiles, extendedLink for the extended one. Each reaches its state machine for an
// event by a method that marks the peer as touched, because any event may change the deadline:
// the end of the event (flush, which unlock calls if nothing else has) arms the timer for the
// new one.
type link interface {
	// receive feeds a packet to the state machine.
	receive(a *RxPacket)
	// send starts a send. It reports whether its packets may wait for those of further
	// sends, which blocking forbids.
	send(r *Request, blocking bool) (coalesced bool)
	// matched hands a message of the peer to the receive that matches it.
	matched(in *inbound, r *Request)
	// cancel cancels a request if it is not too late; the message of a receive is in.p's. A
	// peer that knows of a send may be asked to cancel it; the request then ends when it has
	// answered.
	cancel(r *Request) bool
	// detach gives the transfer of a request that cannot be cancelled a buffer of its own, as
	// buffers.own does. Drop: nothing else may receive the message of a receive.
	detach(r *Request, keep Keep, drop bool)
	// abort ends the sends of which the peer knows nothing, or everything.
	abort(err error, everything bool)
	// tick acts on deadlines up to horizon.
	tick(horizon handshake.Instant)
	// reconfigure is Engine.Reconfigure for the peer.
	reconfigure(next *Peer)

	// Questions, which change nothing.

	// deadline is the next one.
	deadline() (handshake.Instant, bool)
	// lingerUntil returns until when the peer may still need an answer to what has arrived, and false if it does not.
	lingerUntil() (handshake.Instant, bool)
	// deadEnd returns why the peer cannot go on, or nil.
	deadEnd() error
	// load counts the sends that have not ended, and reports whether something is moving that
	// Close has to wait for. A receive that waits for a message, and a send that waits for its
	// receive, have not begun to move data and may wait forever.
	load() (sends int, moving bool)
	// sendWaits yields the sends that the peer has, from the oldest on and those that rest last, and recvWaits the
	// receives that its messages have matched.
	sendWaits(yield func(*Waiting) bool)
	recvWaits(yield func(*Waiting) bool)
	counters(c *state.PeerCounters)
	snapshot(s *state.Peer, now handshake.Instant)
}

func newPeer(e *Core, rank int, cfg Peer) *peer {
	p := &peer{e: e, rank: rank, cfg: cfg, placed: cfg.Network.Places, unlimited: -1}
	if cfg.Extended == nil {
		p.setHandshake(cfg)
	} else {
		p.setExtended(cfg)
	}
	p.wire, _ = WireOf(p.limits, nil)
	p.wire.Profile, p.wire.Shared = p.profile.String(), cfg.Network.Memory != nil
	p.wire.SingleCopy = p.extended != nil && p.wire.Shared
	return p
}

// configure sets what Config leaves to the core: the ranks and the network's nature.
func (cfg *Peer) configure(local, remote int) {
	cfg.Handshake.Local, cfg.Handshake.Remote = uint32(local), uint32(remote)
	cfg.Handshake.Reliable = cfg.Network.Reliable
	if cfg.Extended != nil {
		x := *cfg.Extended
		x.Local, x.Remote, x.Reliable = uint32(local), uint32(remote), cfg.Network.Reliable
		x.ShortHeaders = cfg.Network.Memory != nil
		cfg.Extended = &x
	}
}

// horizon is the time up to which everything that has arrived from the peer is known to
// have been taken: a time-out must not expire before a packet that is there is read.
func (p *peer) horizon(now handshake.Instant) handshake.Instant {
	if id := p.cfg.Network.ID; id < len(p.e.known) {
		return min(p.e.known[id], now)
	}
	return now
}

// noTags reports whether the peer's messages carry no tag. A nil peer is this
// rank or any.
func (p *peer) noTags() bool { return p != nil && p.limits.NoTags }

// CheckRank reports that a rank is not in the cluster.
func (e *Core) CheckRank(rank int) error {
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
	p.lastDrop.set(p.e.at, p.profile, a, &d)
	d.Packet, d.At = a, p.e.at
	p.e.cfg.Observer.Dropped(p.e.rank, p.rank, d)
}

// noted counts and reports an event.
func (p *peer) noted(n Note) {
	p.events[n.Event]++
	if n.Event == state.EventUnreachable {
		p.unreachableAt = p.e.at
	}
	n.At = p.e.at
	p.e.cfg.Observer.Noted(p.e.rank, p.rank, n)
}

// busy reports whether something is moving that Close has to wait for.
func (p *peer) busy() bool {
	_, moving := p.load()
	return moving
}

// PeerInfo is Device.Peer.
func (e *Core) PeerInfo(rank int) (PeerInfo, error) {
	if err := e.CheckRank(rank); err != nil {
		return PeerInfo{}, err
	}
	if rank == e.rank {
		return PeerInfo{Profile: "self"}, nil
	}
	p := e.peers[rank]
	info := p.limits
	info.Profile, info.Kind, info.Address = p.profile.String(), string(p.cfg.Kind), p.cfg.Address
	return info, nil
}
