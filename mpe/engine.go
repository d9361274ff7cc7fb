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
	// Oversubscribed says that the host has more ranks than cores: a caller that polls
	// then lets other processes run.
	Oversubscribed bool
	// Collectives says how collective calls are carried out.
	Collectives CollectiveConfig
	// Observer is notified of everything worth counting or logging; may be nil.
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
	// probes and Awaits for which a caller sleeps.
	group progress.Group

	noTags bool // some peer's messages carry no tag
	// maxUnexpected is how many messages of its own a rank may have waiting in
	// a communicator.
	maxUnexpected int

	mu sync.Mutex
	// at is when the event at hand began: when mu was taken.
	at     handshake.Instant
	peers  []*peer
	pairs  handshakeActions
	conns  extendedActions
	nextID handshake.ID
	timer  *time.Timer
	// due is when tick is to be called, or never. The timer does so, unless callers or
	// the poller poll: they do.
	due atomic.Int64
	// timed are the peers that may have a deadline.
	timed []*peer
	drops DropCounts // from addresses that are no peer's
	state runState
	idle  chan struct{} // closed when draining and nothing is under way

	// touched are the peers that flush deals with, and accepts the
	// messages whose senders it clears.
	touched []*peer
	accepts []*inbound
	// coalesced: packets of some of the touched wait for those of further sends.
	coalesced atomic.Bool
	// retired are messages that have ended in the event at hand, and spare are
	// for the next ones.
	retired, spare []*inbound
	// one is the datagram at hand of several that have arrived together.
	one RxPacket

	placement   placement
	heartbeats  []chan struct{} // closed by the next tick
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
	e := &Engine{observed: observed, placement: placement{gen: 1}, rank: cfg.Rank, cfg: cfg, epoch: time.Now(), peers: make([]*peer, len(cfg.Peers)), stop: make(chan struct{}), comms: map[uint32]*matcher{}}
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
		pc.configure(cfg.Rank, rank)
		p, err := newPeer(e, rank, pc)
		if err != nil {
			return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
		}
		e.peers[rank] = p
		e.noTags = e.noTags || p.noTags()
		e.cfg.Limits.Unexpected += p.unexpectedLimit()
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

// receiveBatch takes a batch of packets. Unless gen is 0, they may be in the placement of
// that generation.
func (e *Engine) receiveBatch(tr Transport, batch []RxPacket, gen uint32) {
	e.lock()
	defer e.unlock()
	if e.state == closed || gen != 0 && gen != e.placement.gen {
		return
	}
	for i := range batch {
		if batch[i].Each > 0 {
			e.receiveAll(tr, &batch[i])
			continue
		}
		e.receive(tr, &batch[i])
	}
	e.placement.move()
	e.flush()
}

// receive feeds one packet to its peer's state machine.
func (e *Engine) receive(tr Transport, a *RxPacket) {
	p := e.source(a)
	if p == nil {
		e.drops[DropUnknownAddress]++
		e.cfg.Observer.Dropped(e.rank, UnknownPeer, Drop{Reason: DropUnknownAddress, Packet: a})
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
func (e *Engine) receiveAll(tr Transport, all *RxPacket) {
	one := &e.one
	*one = *all
	one.Each = 0
	p := e.source(all)
	for rest := all.Bytes; len(rest) > 0; rest = rest[len(one.Bytes):] {
		one.Bytes = rest[:min(all.Each, len(rest))]
		if p == nil || p.tr != tr || !p.receiveRun(one, rest, all.Each) {
			e.receive(tr, one)
		}
	}
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

// touch has flush deal with a peer.
func (e *Engine) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.touched = append(e.touched, p)
	}
}

// flush ends every event: it clears the senders of matched messages, lets the
// extended peers acknowledge, sets the timer, and ends a drain when nothing is
// left to wait for. It deals with the touched peers only.
func (e *Engine) flush() {
	for i := 0; ; {
		if len(e.ended) > 0 || len(e.resumed) > 0 || len(e.ready) > 0 || len(e.failures) > 0 {
			e.stepped()
		}
		if len(e.accepts) > 0 {
			e.acceptAll()
			continue
		}
		if i == len(e.touched) {
			break
		}
		p := e.touched[i]
		i++
		p.endEvent()
		e.noteDeadline(p)
		p.touched = false
	}
	clear(e.touched)
	e.touched = e.touched[:0]
	if e.coalesced.Load() {
		e.coalesced.Store(false)
	}
	e.recycle()
	if e.placement.next.req != nil { // a message has been asked for
		e.placement.move()
	}
	if e.state == draining && e.idle != nil && !e.busy() {
		close(e.idle)
		e.idle = nil
	}
}

// acceptAll clears the senders of messages that receives have matched.
func (e *Engine) acceptAll() {
	for i := 0; i < len(e.accepts); i++ {
		in := e.accepts[i]
		e.accepts[i] = nil
		if p := in.p; p != nil {
			p.accept(in)
		}
	}
	e.accepts = e.accepts[:0]
}

// unlock releases the lock at the end of an event, and ends the event if that was not
// done. Peers whose packets are coalesced stay touched.
func (e *Engine) unlock() {
	if len(e.touched) > 0 && !e.coalesced.Load() && e.state != closed {
		e.flush()
	}
	e.mu.Unlock()
}

// now is the engine's clock: time since it started.
func (e *Engine) now() handshake.Instant { return time.Since(e.epoch) }

// lock takes the lock for an event.
func (e *Engine) lock() {
	e.mu.Lock()
	e.at = e.now()
}

// busy reports whether data is on the move.
func (e *Engine) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool { return p != nil && p.busy() && !(e.forgone && p.onlyAborts()) })
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
	e.abortQueued(ErrClosed)
	idle := make(chan struct{})
	e.idle = idle
	e.flush()
	e.mu.Unlock()
	e.group.Waiting.Add(1) // packets are awaited until the drain ends
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
	e.heartbeat()
	close(e.stop)
	e.timer.Stop()
	for _, p := range e.peers {
		if p != nil {
			p.abortAll(ErrClosed)
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
