package mpe

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/match"
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
	rank int
	cfg  Config
	// observed: the Observer is notified of every message that ends.
	observed bool
	noTags   bool // some peer's messages carry no tag

	driver driver

	mu sync.Mutex
	// at is when the event at hand began: when mu was taken.
	at     handshake.Instant
	peers  []*peer
	pairs  handshakeActions
	conns  extendedActions
	nextID handshake.ID
	// timed are the peers that may have a deadline.
	timed []*peer
	drops DropCounts // from addresses that are no peer's
	state runState
	drain drain

	pending   pending
	inbounds  inboundPool
	placement placement
	matchers  matchers
	probes    []*probe
	buffers   buffers
	// collectiveOps are the collective calls under way.
	collectiveOps []*collectiveOp
	// ended are requests of collective calls that have, resumed are calls whose
	// user's functions have ended, woken is for advanceCollectives to use.
	ended          []*Request
	resumed, woken []*collectiveOp
	// ready are orderings that all members have learned of.
	ready []*ordering
	// aborts are those that other ranks have sent. commEpoch distinguishes communicators
	// whose first member is this rank from earlier ones of the same number. abortsDropped:
	// Close does not wait until this rank's aborts are sent.
	aborts        []abortMsg
	commEpoch     uint64
	abortsDropped bool
	// computed is closed when a user's function has come to its end.
	computed      chan struct{}
	agreements    map[uint32]*agreement // of communicators
	alone         *agreement            // for calls that need none
	disagreements uint64
	builtIn       *choice.Table // that of another version, in a test
	collectives   map[*coll.Algorithm]*CollectiveCount
}

// drain is what Close waits for.
type drain struct {
	idle chan struct{} // closed when draining and nothing is under way
	cut  []Waiting     // what was under way when there was no time left
}

// pending is what the end of an event (flush) has to do.
type pending struct {
	// touched are the peers that it deals with, and accepts the
	// messages whose senders it clears.
	touched []*peer
	accepts []*inbound
	// coalesced: packets of some of the touched wait for those of further sends.
	coalesced atomic.Bool
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
	e := &Engine{observed: observed, placement: placement{gen: 1}, rank: cfg.Rank, cfg: cfg, peers: make([]*peer, len(cfg.Peers))}
	e.driver.init(e)
	e.matchers.init(cfg.Limits, len(cfg.Peers))
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
		e.matchers.limits.Unexpected += p.unexpectedLimit()
		if !seen[pc.Transport] {
			seen[pc.Transport] = true
			e.driver.transports = append(e.driver.transports, pc.Transport)
		}
	}
	if err := e.driver.start(); err != nil {
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
	one := &e.pairs.one
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

// source finds the peer that a packet came from; nil if its address is no peer's.
func (e *Engine) source(a *RxPacket) *peer {
	if a.Peer < 0 || a.Peer >= len(e.peers) {
		return nil
	}
	return e.peers[a.Peer]
}

// touch has flush deal with a peer.
func (e *Engine) touch(p *peer) {
	if !p.touched {
		p.touched = true
		e.pending.touched = append(e.pending.touched, p)
	}
}

// flush ends every event: it clears the senders of matched messages, lets the
// extended peers acknowledge, sets the timer, and ends a drain when nothing is
// left to wait for. It deals with the touched peers only.
func (e *Engine) flush() {
	for i := 0; ; {
		if len(e.ended) > 0 || len(e.resumed) > 0 || len(e.ready) > 0 || len(e.aborts) > 0 {
			e.advanceCollectives()
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
		p.endEvent()
		e.noteDeadline(p)
		p.touched = false
	}
	clear(e.pending.touched)
	e.pending.touched = e.pending.touched[:0]
	if e.pending.coalesced.Load() {
		e.pending.coalesced.Store(false)
	}
	e.inbounds.recycle()
	if e.placement.next.req != nil { // a message has been asked for
		e.placement.move()
	}
	if e.state == draining && e.drain.idle != nil && !e.busy() {
		close(e.drain.idle)
		e.drain.idle = nil
	}
}

// acceptAll clears the senders of messages that receives have matched.
func (e *Engine) acceptAll() {
	for i := 0; i < len(e.pending.accepts); i++ {
		in := e.pending.accepts[i]
		e.pending.accepts[i] = nil
		if p := in.p; p != nil {
			p.accept(in)
		}
	}
	e.pending.accepts = e.pending.accepts[:0]
}

// unlock releases the lock at the end of an event, and ends the event if that was not
// done. Peers whose packets are coalesced stay touched.
func (e *Engine) unlock() {
	if len(e.pending.touched) > 0 && !e.pending.coalesced.Load() && e.state != closed {
		e.flush()
	}
	e.mu.Unlock()
}

// lock takes the lock for an event.
func (e *Engine) lock() {
	e.mu.Lock()
	e.at = e.driver.now()
}

// busy reports whether data is on the move.
func (e *Engine) busy() bool {
	return slices.ContainsFunc(e.peers, func(p *peer) bool { return p != nil && p.busy() && !(e.abortsDropped && p.onlyAborts()) })
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
	e.drain.idle = idle
	e.flush()
	e.mu.Unlock()
	e.driver.group.Waiting.Add(1) // packets are awaited until the drain ends
	e.driver.group.Watch()
	defer time.AfterFunc(abortTime, e.dropAborts).Stop()

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
		e.drain.cut = e.moving()
	}
	e.state, e.drain.idle = closed, nil
	e.notifyHeartbeats()
	close(e.driver.stop)
	e.driver.timer.Stop()
	for _, p := range e.peers {
		if p != nil {
			p.abortAll(ErrClosed)
		}
	}
	e.advanceCollectives() // calls whose messages have ended do, too
	e.mu.Unlock()
	return cmp.Or(err, e.driver.closeTransports())
}
