package mpe

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is what an engine keeps about one remote rank. The engine's lock guards
// it. It has a pair, or a conn if its profile is extended.
type peer struct {
	rank int
	cfg  Peer
	tr   Transport
	src  *source // nil if tr cannot be polled
	// touched: something happened that settle has to look at. timed: it is among
	// the engine's timed.
	touched, timed bool
	// status is what it has last reported of what it has to send, and told what was
	// reported to it.
	status, told coll.Status
	// lands: its transport can put long messages where they belong.
	lands bool
	// burst counts the sends posted since anything else has happened.
	burst int

	pair pairState
	// sending and recving are handed to the pair; sendq waits behind sending
	// in the order in which it was posted. announced is the message of the
	// SEND_REQUEST that is deferred in the pair while it is unexpected.
	sending, recving *Request
	sendq            queue
	announced        *inbound

	conn    connState
	longest int64 // message that may be sent, in bytes
	packets PacketTransport
	lending SingleCopier   // nil if its transport copies all payload
	paced   PacedTransport // nil if nothing is
	outs    outbox
	ins     inbox

	header     [protocol.HeaderLen]byte
	writing    bool       // a goroutine is writing to the peer
	behind     []outgoing // what waits for it
	sendErr    error      // the last error of the transport, until a send succeeds
	packetsOut [protocol.Error + 1]uint64
	packetsIn  uint64
	bytesIn    uint64
	bytesOut   uint64
	drops      [handshake.NumReasons]uint64
	events     [handshake.NumEvents]uint64
	extDrops   [extended.NumReasons]uint64
	extEvents  [extended.NumEvents]uint64
	sendsDone  uint64
	recvsDone  uint64
	failures   uint64
	// sentBytes and recvBytes are the payload of sendsDone and recvsDone.
	sentBytes, recvBytes uint64
	// Of a handshake: dataOut counts the datagrams of DATA messages, dataBytes the
	// bytes in them, and giveUps the messages that the peer did not answer in time.
	dataOut, dataBytes, giveUps uint64
	// takenOver counts messages that a receive took over while they were
	// arriving, and takenOverBytes what was spared a second copy.
	takenOver, takenOverBytes uint64
}

func newPeer(rank int, cfg Peer) (*peer, error) {
	p := &peer{rank: rank, cfg: cfg, tr: cfg.Transport}
	p.paced, _ = cfg.Transport.(PacedTransport)
	_, p.lands = cfg.Transport.(DirectPlacer)
	if cfg.Extended == nil {
		p.pair = handshake.New(cfg.Handshake)
		return p, nil
	}
	packets, ok := cfg.Transport.(PacketTransport)
	if !ok {
		return nil, fmt.Errorf("peer %d: its transport does not carry the extended profile", rank)
	}
	p.packets = packets
	p.lending, _ = cfg.Transport.(SingleCopier)
	p.conn = extended.New(*cfg.Extended)
	p.longest = p.conn.Config().MaxLength
	p.lands = p.lands && p.conn.Config().MaxPayload >= minPlacement // they land one by one
	return p, nil
}

// profile is the dialect spoken with the peer.
func (p *peer) profile() protocol.Profile {
	if p.conn != nil {
		return protocol.Extended
	}
	return p.cfg.Handshake.Profile
}

// noTags reports whether the peer's messages carry no tag. A nil peer is this
// rank or any.
func (p *peer) noTags() bool { return p != nil && p.profile() == protocol.CloudFPGA }

// check refuses what the peer's profile cannot carry.
func (p *peer) check(op *Operation) error {
	if p.conn != nil {
		if limit := p.longest; int64(len(op.Buf)) > limit && op.Kind != OpRecv {
			return fmt.Errorf("%d bytes to rank %d: %w of %d bytes", len(op.Buf), p.rank, handshake.ErrTooLong, limit)
		}
		return nil
	}
	switch {
	case op.Comm != 0:
		return fmt.Errorf("rank %d: %w (%v): only the world reaches it", p.rank, ErrComm, p.profile())
	case len(op.Buf)%protocol.WordLen != 0:
		return fmt.Errorf("%d bytes: %w: messages are counted in 32-bit words", len(op.Buf), ErrLength)
	case p.profile() == protocol.V09 && op.Tag > 255:
		return fmt.Errorf("tag %d: %w: profile v0.9 carries 0 to 255", op.Tag, ErrTag)
	}
	return nil
}

// Peer describes a rank of the cluster.
func (e *Engine) Peer(rank int) (PeerInfo, error) {
	if rank < 0 || rank >= len(e.peers) {
		return PeerInfo{}, fmt.Errorf("rank %d: %w: the cluster has ranks 0 to %d", rank, ErrRank, len(e.peers)-1)
	}
	if rank == e.rank {
		return PeerInfo{Profile: "self"}, nil
	}
	p := e.peers[rank]
	e.mu.Lock() // Reconfigure may give it another address
	defer e.mu.Unlock()
	info := PeerInfo{Profile: p.profile().String(), Kind: p.cfg.Kind, Address: p.cfg.Address}
	if p.pair != nil {
		info.Words, info.NoComms, info.NoLength = true, true, true
		info.NoTags = p.noTags()
		info.SmallTags = !info.NoTags
		info.NoEmpty = p.cfg.Handshake.Peer.RefusesEmpty
	}
	return info, nil
}

func (p *peer) received(b []byte) {
	p.packetsIn++
	p.bytesIn += uint64(len(b))
}

// receivedAll is received for datagrams of which each has so many bytes.
func (p *peer) receivedAll(bytes, each int) {
	p.packetsIn += uint64((bytes + each - 1) / each)
	p.bytesIn += uint64(bytes)
}

func (p *peer) sent(t protocol.Type, bytes int) {
	p.packetsOut[t]++
	p.bytesOut += uint64(bytes)
}

func (p *peer) sendFailed(e *Engine, err error) {
	p.sendErr = err
	if err != nil {
		e.cfg.Observer.TransportError(e.rank, err)
	}
}

// busy reports whether something is under way that a drain should wait for. A
// receive that waits for a message, and a send that waits for its receive, have
// not begun to move data and may wait for ever.
func (p *peer) busy() bool {
	if p.conn != nil {
		return p.conn.Busy()
	}
	s, _ := p.pair.SendWait()
	r, _ := p.pair.RecvWait()
	return s.State == handshake.WaitAck || r.State == handshake.WaitData || r.State == handshake.Receiving
}

func (p *peer) deadline() (handshake.Instant, bool) {
	if p.conn != nil {
		return p.conn.Deadline()
	}
	return p.pair.Deadline()
}
