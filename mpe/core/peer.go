package core

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is the part of a remote rank's state that all profiles share. The engine's lock guards it.
type peer struct {
	link
	// handshake or extended is the link field with its concrete type, depending on the profile; the other one is nil.
	handshake *handshakeLink
	extended  *extendedLink

	e    *Core
	rank int
	cfg  Peer
	// touched means that the peer's state machine was used since the last flush, so that flush must reread its
	// deadline. isTimed means that the peer is in Core.deadlinePeers.
	touched, isTimed bool
	// canPlace means that the network can place long messages directly. placement is their current destination.
	canPlace  bool
	placement placement
	*wireLimits
	// wire holds the properties of the peer's wire that collective calls depend on.
	wire collective.Wire
	// burstLen is the number of consecutive sends posted to the peer without a wait or a received packet in between.
	burstLen int
	// refusedAt is the time at which the engine last refused a message because the peer had no memory for it. It is 0
	// if the engine has accepted a message since.
	refusedAt handshake.Instant

	peerCounts
	sendErr error // last error of the transport; cleared when a send succeeds
	// kernelErr is the error with which the peer's kernel failed. The next receive returns it unless a message arrives
	// first. sendsAtAnswer is the value that sendsDone had when the last message from the peer arrived.
	kernelErr     error
	sendsAtAnswer uint64
	// lastPacketAt is the time of the last received packet, or 0. lastDrop describes the last dropped packet, or is
	// nil.
	lastPacketAt handshake.Instant
	lastDrop     *lastDrop
	// unreachableAt is the time at which the peer's failure to answer last ended an operation or the session, or 0.
	unreachableAt handshake.Instant
}

// peerCounts holds the counters that all profiles share. They count from the call of New.
type peerCounts struct {
	packetsOut                   [state.NumTypes]uint64
	packetsIn, bytesIn, bytesOut uint64
	drops                        state.DropCounts
	events                       state.EventCounts
	sendsDone, recvsDone, failed uint64
	sentBytes, recvBytes         uint64 // payload of sendsDone and recvsDone
	// takenOver counts the messages that a receive matched while they were arriving, and takenOverRemaining their bytes
	// that were still missing then.
	takenOver, takenOverRemaining uint64
}

// link is the interface to a peer's state machine, which depends on the profile. handshakeLink implements it for the
// cloudfpga and v0.9 profiles, extendedLink for the extended profile. A method that passes an event to the state
// machine marks the peer as touched, because any event may change the deadline; flush, at the end of the event, then
// updates the time of the next tick.
type link interface {
	// receive passes a packet to the state machine.
	receive(a *RxPacket)
	// send starts a send. It reports whether its packets are held back, to be sent together with packets of later
	// sends. Packets of a blocking send are never held back.
	send(r *Request, blocking bool) (coalesced bool)
	// matched hands a message from the peer to the receive that matches it.
	matched(in *inbound, r *Request)
	// cancel cancels a request, and reports whether it was in time. For a receive, call cancel on the link of the peer
	// that sends its message (in.p). If the peer already knows of a send, cancel may return false and ask the peer to
	// cancel it; the peer's answer then ends the request.
	cancel(r *Request) bool
	// detach moves the transfer of a request that cannot be cancelled to the memory that buffers.detach returns. If
	// drop is set, the message is discarded instead of offered to other receives.
	detach(r *Request, keep KeepFunc, drop bool)
	// abort ends all requests if everything is set. Otherwise it ends only the sends that the peer does not know of; an
	// extended link also asks the peer to cancel announced sends.
	abort(err error, everything bool)
	// tick acts on deadlines up to horizon.
	tick(horizon handshake.Instant)
	// reconfigure implements Engine.Reconfigure for the peer.
	reconfigure(next *Peer)

	// The remaining methods do not change anything.

	// deadline returns the next deadline, if any.
	deadline() (handshake.Instant, bool)
	// lingerUntil returns the time until which the peer may retransmit packets that need an answer, if any.
	lingerUntil() (handshake.Instant, bool)
	// deadEnd returns the reason why the peer cannot continue, or nil.
	deadEnd() error
	// pendingLoad returns the number of pending sends, and reports whether a transfer is in progress, so that Close
	// must wait. A receive without a message, or a send without a receive, is no transfer in progress, because it may
	// wait forever.
	pendingLoad() (sends int, moving bool)
	// sendWaits yields the pending sends, oldest first, and resting sends last. recvWaits yields the receives that
	// messages from the peer have matched.
	sendWaits(yield func(*Waiting) bool)
	recvWaits(yield func(*Waiting) bool)
	// addCounters and snapshot fill in the parts of a report that only the link knows.
	addCounters(c *state.PeerCounters)
	snapshot(s *state.Peer, now handshake.Instant)
}

func newPeer(e *Core, rank int, cfg Peer) *peer {
	p := &peer{e: e, rank: rank, cfg: cfg, canPlace: cfg.Network.Places, wireLimits: e.peers.limits[rank]}
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

// configure sets the ranks and the properties of the network in the configuration.
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

// horizon returns the time up to which all packets from the peer's network are known to be processed. No timeout may
// expire beyond it, because a packet that arrived in time may still be unread.
func (p *peer) horizon(now handshake.Instant) handshake.Instant {
	if id := p.cfg.Network.ID; id < len(p.e.processedUntil) {
		return min(p.e.processedUntil[id], now)
	}
	return now
}

// noTags reports whether the peer's messages carry no tag. It returns false for a nil peer, which stands for this rank
// or for any rank.
func (p *peer) noTags() bool { return p != nil && p.limits.NoTags }

// CheckRank returns an error that matches ErrRank if rank is not in the cluster.
func (e *Core) CheckRank(rank int) error {
	if rank < 0 || rank >= len(e.peers.list) {
		return fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, ErrRank, len(e.peers.list)-1)
	}
	return nil
}

// countReceived counts a packet, of which b was received. If more of it is elsewhere, the caller adds that to bytesIn.
func (p *peer) countReceived(bytes int) {
	p.lastPacketAt = p.e.now
	p.packetsIn++
	p.bytesIn += uint64(bytes)
}

// countDatagrams counts received datagrams, each of which has a length of each bytes; the last one may be shorter.
func (p *peer) countDatagrams(bytes, each int) {
	p.lastPacketAt = p.e.now
	p.packetsIn += uint64((bytes + each - 1) / each)
	p.bytesIn += uint64(bytes)
}

// isSilent reports whether the peer was declared unreachable and has sent no packet since.
func (p *peer) isSilent() bool { return p.unreachableAt > 0 && p.lastPacketAt < p.unreachableAt }

// countSent counts a packet, header included. A packet that the network then refuses counts as sent and lost.
func (p *peer) countSent(t protocol.Type, bytes int) {
	p.packetsOut[t]++
	p.bytesOut += uint64(bytes)
}

// sendResult records the transport's result of sending to the peer.
func (p *peer) sendResult(err error) {
	p.sendErr = err
	if err != nil {
		p.e.cfg.Observer.TransportError(p.e.rank, err)
	}
}

// reportDrop counts a dropped packet and reports it to the Observer. packet is nil if an expired deadline caused the
// drop.
func (p *peer) reportDrop(packet *RxPacket, drop Drop) {
	p.drops[drop.Reason]++
	if p.lastDrop == nil {
		p.lastDrop = new(lastDrop)
	}
	p.lastDrop.set(p.e.now, p.profile, packet, &drop)
	drop.Packet, drop.At = packet, p.e.now
	p.e.cfg.Observer.Dropped(p.e.rank, p.rank, drop)
}

// reportEvent counts and reports an event.
func (p *peer) reportEvent(note Note) {
	p.events[note.Event]++
	if note.Event == state.EventUnreachable {
		p.unreachableAt = p.e.now
	}
	note.At = p.e.now
	p.e.cfg.Observer.Noted(p.e.rank, p.rank, note)
}

// busy reports whether a transfer is in progress, so that Close must wait.
func (p *peer) busy() bool {
	_, moving := p.pendingLoad()
	return moving
}

// PeerInfo implements Device.Peer.
func (e *Core) PeerInfo(rank int) (PeerInfo, error) {
	if err := e.CheckRank(rank); err != nil {
		return PeerInfo{}, err
	}
	if rank == e.rank {
		return PeerInfo{Profile: "self"}, nil
	}
	p := e.peers.at(rank)
	info := p.limits
	info.Profile, info.Kind, info.Address = p.profile.String(), string(p.cfg.Kind), p.cfg.Address
	return info, nil
}
