package mpe

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Peer configures one of the ranks that an engine talks to.
type Peer struct {
	// Handshake is how to talk to it, unless Extended is set, which is how to
	// talk to a peer of the extended profile. Local, Remote and Reliable are
	// filled in.
	Handshake handshake.Config
	Extended  *extended.Config
	// Transport carries the packets; several peers may share one.
	Transport Transport
	// Kind and Address are for messages to people.
	Kind, Address string
}

// Config configures an engine.
type Config struct {
	// Rank is the local rank.
	Rank int
	// Peers has an entry per rank of the cluster, in rank order; the local
	// rank's own is ignored.
	Peers []Peer
	// TrustSource accepts packets from addresses that the rank map does not
	// know, by the rank that their header names. A stand-in does so when its
	// drop_unknown_ip habit is switched off.
	TrustSource bool
	// Limits bounds the receives and messages that wait in each communicator.
	// Messages have as much room as the extended peers have credit besides.
	Limits match.Limits
	// Crowded says that the host has more ranks than cores: whoever looks for
	// packets then lets other processes run.
	Oversubscribed bool
	// Collectives says how collective calls are carried out.
	Collectives CollectiveConfig
	// Observer is told of everything worth counting or logging; may be nil.
	Observer Observer
}

// Engine is one rank's message passing engine.
type Engine struct {
	rank  int
	cfg   Config
	epoch time.Time

	// observed: somebody wants to know of every message.
	observed bool
	// group has the transports that can be polled. Its Waiting counts the requests,
	// probes and Awaits that somebody waits for without looking for packets himself.
	group progress.Group

	noTags bool // some peer's messages carry no tag
	// maxUnexpected is how many messages of its own a rank may have waiting in
	// a communicator.
	maxUnexpected int

	mu sync.Mutex
	// at is when the event at hand began: when mu was taken.
	at     handshake.Instant
	peers  []*peer
	acts   []handshake.Action
	xacts  []extended.Action
	nextID handshake.ID
	timer  *time.Timer
	// due is when tick is to be called, or never. The timer does so, unless the
	// packets of some transport are taken by callers or the poller: they do.
	due atomic.Int64
	// timed are the peers that may have a deadline.
	timed []*peer
	drops [handshake.NumReasons]uint64 // from addresses that are no peer's
	state runState
	idle  chan struct{} // closed when draining and nothing is under way

	// touched are the peers that settle is to look at, and accepts the
	// messages whose senders it is to tell.
	touched []*peer
	accepts []*inbound
	// corked: sends to some of the touched wait for company.
	corked atomic.Bool
	// retired are messages that have ended in the event at hand, and spare are
	// for the next ones.
	retired, spare []*inbound
	// reposts are receives whose messages turned out not to exist.
	reposts []*Request
	// packets[:queued] wait to be sent to the peer at hand, with so many bytes of
	// payload.
	packets             [packetBatch]Packet
	queued, queuedBytes int
	// one is the datagram at hand of several that have arrived together.
	one RxPacket

	landing     landing
	strays      strays
	pulses      []chan struct{} // of those who wait for the next tick
	cut         []Waiting       // what Close has cut off
	comms       map[uint32]*matcher
	lastComm    uint32
	lastMatcher *matcher
	probes      []*probe
	buffers     buffers
	// callings are the collective calls under way.
	callings []*calling
	// ended are requests of collective calls that have, resumed are calls whose
	// user's functions have ended, woken is for stepped to use.
	ended          []*Request
	resumed, woken []*calling
	// ready are orderings that all members have learned of.
	ready []*ordering
	// failures are what others have told of calls, life what tells communicators whose
	// first member is this rank from earlier ones; forgone: Close does not wait for
	// what is told.
	failures []failure
	life     uint64
	forgone  bool
	// computed is closed when a user's function has come to its end.
	computed      chan struct{}
	agreements    map[uint32]*agreement // of communicators
	alone         *agreement            // for calls that need none
	disagreements uint64
	builtIn       *choice.Table // that of another version, in a test
	collectives   map[*coll.Algorithm]*CollectiveCount
	waiters       sync.Pool // of channels for Wait, each with room for one value

	transports []Transport
	// sources are those that can be polled.
	sources    []*source
	stop       chan struct{} // closed by Close
	goroutines sync.WaitGroup
}

type runState uint8

const (
	running runState = iota
	draining
	closed
)

// New starts the engine of a rank. The engine owns the peers' transports from
// here on, and closes them in Close.
func New(cfg Config) (*Engine, error) {
	if cfg.Rank < 0 || cfg.Rank >= len(cfg.Peers) {
		return nil, fmt.Errorf("rank %d is not one of the %d ranks of the cluster", cfg.Rank, len(cfg.Peers))
	}
	observed := cfg.Observer != nil
	if !observed {
		cfg.Observer = nopObserver{}
	}
	e := &Engine{observed: observed, landing: landing{gen: 1}, rank: cfg.Rank, cfg: cfg, epoch: time.Now(), peers: make([]*peer, len(cfg.Peers)), stop: make(chan struct{}), comms: map[uint32]*matcher{}}
	if cfg.Limits.Unexpected == 0 {
		cfg.Limits.Unexpected = match.DefaultLimit
	}
	e.maxUnexpected = cfg.Limits.Unexpected
	e.cfg.Limits.Unexpected = cfg.Limits.Unexpected + len(cfg.Peers)
	seen := map[Transport]bool{}
	for rank, pc := range cfg.Peers {
		if rank == cfg.Rank {
			continue
		}
		if pc.Transport == nil {
			return nil, fmt.Errorf("rank %d: peer %d has no transport", cfg.Rank, rank)
		}
		pc.Handshake.Local, pc.Handshake.Remote = uint32(cfg.Rank), uint32(rank)
		pc.Handshake.Reliable = pc.Transport.Reliable()
		if x := pc.Extended; x != nil {
			mine := *x
			mine.Local, mine.Remote, mine.Reliable = uint32(cfg.Rank), uint32(rank), pc.Transport.Reliable()
			pc.Extended = &mine
		}
		p, err := newPeer(rank, pc)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
		}
		e.peers[rank] = p
		e.noTags = e.noTags || p.noTags()
		if p.conn != nil {
			e.cfg.Limits.Unexpected += p.conn.Config().Messages
		}
		if !seen[pc.Transport] {
			seen[pc.Transport] = true
			e.transports = append(e.transports, pc.Transport)
		}
	}
	e.timer = time.AfterFunc(time.Hour, e.expired)
	e.timer.Stop()
	e.due.Store(never)
	if err := e.startReading(); err != nil {
		return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
	}
	return e, nil
}

// Rank returns the local rank.
func (e *Engine) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *Engine) Size() int { return len(e.peers) }

// arrived takes a batch of packets. Unless gen is 0, they may be in the landing of
// that generation.
func (e *Engine) arrived(tr Transport, batch []RxPacket, gen uint32) {
	e.lock()
	defer e.unlock()
	if e.state == closed || gen != 0 && gen != e.landing.gen {
		return
	}
	for i := range batch {
		if batch[i].Each > 0 {
			e.arrivals(tr, &batch[i])
			continue
		}
		e.arrival(tr, &batch[i])
	}
	e.landing.move()
	e.settle()
}

// arrival feeds one packet to its peer's state machine and acts on the answer.
func (e *Engine) arrival(tr Transport, a *RxPacket) {
	p := e.source(a)
	if p == nil {
		e.drops[handshake.ReasonUnknownAddress]++
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, a, handshake.Action{Reason: handshake.ReasonUnknownAddress})
		return
	}
	if p.tr != tr {
		// A peer is spoken to over one transport; what comes over
		// another one is not from it.
		e.dropped(p, a, handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonUnexpectedPayload})
		return
	}
	if p.conn != nil {
		e.arrivalExtended(p, a)
	} else {
		e.arrivalPair(p, a)
	}
}

// arrivals feeds several datagrams, one by one where they are not the middle of a
// message.
func (e *Engine) arrivals(tr Transport, all *RxPacket) {
	one := &e.one
	*one = *all
	one.Each = 0
	p := e.source(all)
	for rest := all.Bytes; len(rest) > 0; rest = rest[len(one.Bytes):] {
		one.Bytes = rest[:min(all.Each, len(rest))]
		if p == nil || p.tr != tr || p.pair == nil {
			e.arrival(tr, one)
			continue
		}
		n, acts := e.pair(p).Run(e.at, rest, all.Each, e.acts[:0])
		e.acts = acts
		if n == 0 {
			e.arrivalPair(p, one)
			continue
		}
		one.Bytes = rest[:n]
		p.receivedAll(n, all.Each)
		e.act(p, one)
	}
}

// arrivalExtended feeds a packet to an extended peer's state machine.
func (e *Engine) arrivalExtended(p *peer, a *RxPacket) {
	now := e.at
	p.burst = 0
	switch a.Kind {
	case RxConnected:
		if p.lending != nil {
			e.conn(p).LongPackets(p.lending.LongPayload(p.rank))
		}
		e.xacts = e.conn(p).Reconnected(now, e.xacts[:0])
	case RxBroken:
		p.drops[handshake.ReasonStream]++
		e.cfg.Observer.Dropped(e.rank, p.rank, a, handshake.Action{Reason: handshake.ReasonStream})
		return
	default: // what is no whole packet is dropped, with the reason that the machine finds
		p.received(a.Bytes)
		if a.Away > 0 {
			payload := e.fetch(p, a)
			if payload == nil {
				return
			}
			p.bytesIn += uint64(len(payload))
			e.xacts = e.conn(p).PacketParts(now, a.Bytes, payload, e.xacts[:0])
			break
		}
		if a.Offer != 0 {
			e.xacts = e.conn(p).PacketAdvertised(now, a.Bytes, e.xacts[:0])
			break
		}
		if a.Checked {
			e.xacts = e.conn(p).Checked(now, a.Bytes, e.xacts[:0])
			break
		}
		if len(a.Rest) == 0 {
			e.xacts = e.conn(p).Packet(now, a.Bytes, e.xacts[:0])
			break
		}
		p.bytesIn += uint64(len(a.Rest))
		e.xacts = e.conn(p).PacketParts(now, a.Bytes, a.Rest, e.xacts[:0])
	}
	e.actExtended(p, a)
}

// arrivalPair feeds a packet to a handshake.
func (e *Engine) arrivalPair(p *peer, a *RxPacket) {
	now := e.at
	switch a.Kind {
	case RxDatagram:
		p.received(a.Bytes)
		e.acts = e.pair(p).Datagram(now, a.Bytes, e.acts[:0])
	case RxHeader:
		p.received(a.Bytes)
		e.acts = e.pair(p).Header(now, a.Bytes, e.acts[:0])
	case RxPayload:
		p.bytesIn += uint64(len(a.Bytes))
		e.acts = e.pair(p).Payload(now, a.Bytes, e.acts[:0])
	case RxConnected:
		p.behind = nil // it was for the old connection
		e.acts = e.pair(p).Reconnected(now, e.acts[:0])
	case RxTruncated:
		p.received(a.Bytes)
		e.acts = append(e.acts[:0], handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonLength})
	case RxBroken:
		e.acts = append(e.acts[:0], handshake.Action{Kind: handshake.Drop, Reason: handshake.ReasonStream})
	}
	e.act(p, a)
}

// source finds the peer that a packet came from.
func (e *Engine) source(a *RxPacket) *peer {
	rank := a.Peer
	if rank == UnknownPeer && e.cfg.TrustSource && a.Kind == RxDatagram {
		if h, defect := protocol.CloudFPGA.Parse(a.Bytes); defect.OK() && int64(h.Src) < int64(len(e.peers)) {
			rank = int(h.Src)
		}
	}
	if rank < 0 || rank >= len(e.peers) {
		return nil
	}
	return e.peers[rank]
}

// touch has settle look at a peer.
func (e *Engine) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.touched = append(e.touched, p)
	}
}

// settle ends every event: it tells the senders of matched messages, lets the
// extended peers acknowledge, sets the timer, and tells a drain when nothing is
// left to wait for. Only peers that something happened to are looked at.
func (e *Engine) settle() {
	for i := 0; ; {
		if len(e.ended) > 0 || len(e.resumed) > 0 || len(e.ready) > 0 || len(e.failures) > 0 {
			e.stepped()
		}
		if len(e.accepts) > 0 {
			e.accept()
			continue
		}
		if i == len(e.touched) {
			break
		}
		p := e.touched[i]
		i++
		if p.conn != nil {
			e.xacts = e.conn(p).Flush(e.at, e.xacts[:0])
			e.actExtended(p, nil)
		}
		e.wakeFor(p)
		p.touched = false
	}
	clear(e.touched)
	e.touched = e.touched[:0]
	if e.corked.Load() {
		e.corked.Store(false)
	}
	e.recycle()
	if e.landing.next.req != nil { // a message has been asked for
		e.landing.move()
	}
	if e.state == draining && e.idle != nil && !e.busy() {
		close(e.idle)
		e.idle = nil
	}
}

// busy reports whether data is on the move.
func (e *Engine) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool { return p != nil && p.busy() && !(e.forgone && p.onlyTelling()) })
}

// Close ends the engine. No new operation is accepted; handshakes that are
// under way are given until ctx is done to end well, then everything still
// posted fails with ErrClosed and the transports are closed. It returns ctx's
// error if something had to be cut off.
func (e *Engine) Close(ctx context.Context) error {
	e.lock()
	if e.state == closed {
		e.mu.Unlock()
		return nil
	}
	e.state = draining
	e.failQueued(ErrClosed)
	idle := make(chan struct{})
	e.idle = idle
	e.settle()
	e.mu.Unlock()
	e.group.Waiting.Add(1) // for as long as packets come, which nobody else waits for
	e.group.Rest()
	defer time.AfterFunc(tellingTime, e.forgo).Stop()

	var err error
	select {
	case <-idle:
	case <-ctx.Done():
		select {
		case <-idle:
		default:
			err = context.Cause(ctx)
		}
	}

	e.lock()
	if err != nil {
		e.cut = e.moving()
	}
	e.state, e.idle = closed, nil
	e.beat()
	close(e.stop)
	e.timer.Stop()
	for _, p := range e.peers {
		if p != nil {
			e.failActive(p, ErrClosed)
		}
	}
	e.stepped() // calls whose messages have ended do, too
	e.mu.Unlock()
	e.group.Close()
	for _, tr := range e.transports {
		if cerr := tr.Close(); cerr != nil && err == nil {
			err = cerr
		}
	}
	e.goroutines.Wait()
	return err
}
