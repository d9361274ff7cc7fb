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
	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/internal/progress"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpe/match"
	"github.com/zrlmpi/zrlmpid/mpe/state"
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
	// Unobserved: the Observer is not notified of messages with the peer that end, and their times may be those of earlier events. To
	// read the clock for each takes as long as much of a message through shared memory.
	Unobserved bool
	// Recorder is given the packets that are exchanged with the peer; nil: none is.
	Recorder PacketRecorder
	// Keeper keeps the state that has to outlive this process of the exchange with a peer of the cloudfpga or v0.9
	// profile; nil: nothing is kept.
	Keeper Keeper
	// Kind and Address are for messages to people.
	Kind    state.Kind
	Address string
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
	Collectives collective.Config
	// Observer is notified of everything worth counting or logging; may be nil.
	Observer Observer
	// Calls is given the operations of the rank's program; nil: they are not recorded.
	Calls CallRecorder
	// Failed, if not nil, is called by a caller of an operation that has failed, before it gets the error. It may take some time.
	Failed func()
	// Report returns what other ranks are answered that ask for this one's report, of at most MaxReport bytes. It may use the engine. Nil: they are not answered.
	Report func() []byte
}

// Engine is one rank's message passing engine: a core, and around it clock, timer, lock,
// random numbers, and the goroutines that read, write and compute.
type Engine struct {
	// mu is held during an event of the core, which it guards.
	mu   sync.Mutex
	core *core.Core

	rank, size int
	observer   Observer // or nil
	failure    failure
	makeReport func() []byte

	requests spareRequests
	// posts is how many operations callers have posted. The lock guards it.
	posts uint32

	clock clock
	timer *time.Timer
	// tickAt is when tick is to be called, or never. The timer does so, unless callers or
	// the poller poll: they do.
	tickAt atomic.Int64
	// heartbeats are closed by the next tick. The lock guards them.
	heartbeats heartbeats
	// group has the transports that can be polled, sources what is read from them. Its
	// Waiting counts the requests, probes and Awaits for which a caller sleeps.
	group   progress.Group
	sources []*source
	// transports are the networks by number, and known is up to when all that had arrived from each was taken.
	transports []Transport
	known      []handshake.Instant
	// outlets are how packets are sent, by peer.
	outlets []outlet
	placed  placed
	// holdsBack: packets are coalesced, as the core has it, for readers without the lock.
	holdsBack  atomic.Bool
	goroutines sync.WaitGroup
	waiters    sync.Pool // of channels for Wait, each with room for one value
	// userEnded is closed when a user's function has come to its end, and idle when nothing
	// is left for which the present part of Close has to wait. The lock guards them.
	userEnded chan struct{}
	idle      chan struct{}
	stop      chan struct{} // closed by Close
	cutOff    []Waiting     // what was under way when Close had no time left
}

// New starts the engine of a rank. The engine owns the peers' transports from
// here on, and closes them in Close.
func New(cfg Config) (*Engine, error) {
	if cfg.Rank < 0 || cfg.Rank >= len(cfg.Peers) {
		return nil, fmt.Errorf("rank %d is not one of the %d ranks of the cluster", cfg.Rank, len(cfg.Peers))
	}
	e := &Engine{
		rank: cfg.Rank, size: len(cfg.Peers), observer: cfg.Observer, failure: failure{cfg.Failed}, makeReport: cfg.Report,
		clock: clock(time.Now()), stop: make(chan struct{}), placed: placed{gen: 1}, outlets: make([]outlet, len(cfg.Peers)),
	}
	e.timer = time.AfterFunc(time.Hour, (*owner)(e).expired)
	e.timer.Stop()
	e.tickAt.Store(int64(core.Never))
	c := core.Config{
		Rank: cfg.Rank, Peers: make([]core.Peer, len(cfg.Peers)), Limits: cfg.Limits, Collectives: cfg.Collectives,
		Observer: cfg.Observer, Calls: cfg.Calls, Reports: cfg.Report != nil,
	}
	c.Collectives.Oversubscribed = cfg.Oversubscribed
	for rank := range cfg.Peers {
		p := &cfg.Peers[rank]
		c.Peers[rank] = p.ofCore()
		if rank == cfg.Rank {
			continue
		}
		if p.Transport == nil {
			return nil, fmt.Errorf("rank %d: peer %d has no transport", cfg.Rank, rank)
		}
		id := slices.Index(e.transports, p.Transport)
		if id < 0 {
			id, e.transports = len(e.transports), append(e.transports, p.Transport)
		}
		c.Peers[rank].Network = networkOf(id, p.Transport)
		e.outlets[rank] = newOutlet(rank, p)
		if p.Extended == nil && e.outlets[rank].handshakes == nil {
			return nil, fmt.Errorf("rank %d: peer %d: its transport carries the extended profile only", cfg.Rank, rank)
		}
		if memory, ok := p.Transport.(MemoryTransport); ok {
			c.Peers[rank].Network.Memory, c.Shared = memory, memory
		}
	}
	e.core = core.New(c, (*effects)(e))
	if err := e.start(cfg.Oversubscribed); err != nil {
		return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
	}
	return e, nil
}

// ofCore is the peer as a core has it, without its network.
func (p *Peer) ofCore() core.Peer {
	return core.Peer{
		Handshake: p.Handshake, Extended: p.Extended, Unobserved: p.Unobserved, Recorder: p.Recorder, Keeper: p.Keeper,
		Kind: p.Kind, Address: p.Address,
	}
}

// networkOf is a transport as a core has it.
func networkOf(id int, tr Transport) core.Network {
	n := core.Network{ID: id, Reliable: tr.Reliable()}
	if p, ok := tr.(PollTransport); ok && p.CanPoll() {
		_, memory := tr.(MemoryTransport)
		n.Places = !memory
	}
	_, n.Datagrams = tr.(DatagramTransport)
	return n
}

// Rank returns the local rank.
func (e *Engine) Rank() int { return e.rank }

// Size returns the number of ranks of the cluster.
func (e *Engine) Size() int { return e.size }

// clock is when an engine's clock began.
type clock time.Time

// now returns the time since then.
func (c clock) now() handshake.Instant { return time.Since(time.Time(c)) }

// Started returns when the engine's clock began, with the reading of the monotonic clock.
func (e *Engine) Started() time.Time { return time.Time(e.clock) }

// lock takes the lock for an event.
func (e *Engine) lock() {
	e.mu.Lock()
	e.core.Begin(e.clock.now())
}

// recentTime is for how long the time of an event may be that of later ones.
const recentTime = time.Millisecond

// recent reports whether an event for which nothing has to be sent may have the time of the last one: to read a clock takes as
// long as much of a small message. A tick is due soon after the last event, and there was none yet. The lock is held.
func (e *Engine) recent() bool {
	return e.core.Quiet() && e.tickAt.Load() <= int64(e.core.Now()+recentTime) && !e.group.Armed()
}

// unlock ends the event and releases the lock.
func (e *Engine) unlock() { unlockAfter(e, e.core.End()) }

// unlockAfter is unlock with the outcome of the event.
func unlockAfter(e *Engine, out *core.Outcome) {
	if len(out.Ended) > 0 {
		completeAll(out)
	}
	if out.Rare {
		e.dealWith(out)
	}
	if soon := e.core.Now() + recentTime; int64(min(out.Deadline, soon)) < e.tickAt.Load() {
		// Soon only if the sources are polled: then it costs no wake-up.
		due := out.Deadline
		if !e.group.Armed() {
			due = min(due, soon)
		}
		if int64(due) < e.tickAt.Load() {
			e.tickAt.Store(int64(due))
			(*owner)(e).Armed()
		}
	}
	if out.Coalesced != e.holdsBack.Load() {
		e.holdsBack.Store(out.Coalesced)
	}
	if e.idle != nil && e.core.AtRest() {
		close(e.idle)
		e.idle = nil
	}
	e.mu.Unlock()
}

// completeAll ends the requests of an event for their callers.
func completeAll(out *core.Outcome) {
	for i, r := range out.Ended {
		out.Ended[i] = nil
		requestOf(r).complete()
	}
	out.Ended = out.Ended[:0]
}

// dealWith does what is rare of an event.
func (e *Engine) dealWith(out *core.Outcome) {
	for _, wake := range out.Wake {
		wake()
	}
	for _, j := range out.Jobs {
		compute(e, j)
	}
	if out.Report { // it takes the lock, and others
		e.goroutines.Go(func() {
			text := e.makeReport()
			e.lock()
			defer e.unlock()
			e.core.Reports.Made(text)
		})
	}
	out.Clear()
}

// Reconfigure takes what may change while messages are exchanged, of a peer for each
// rank as New takes them: the address, which is for people, and what Reconfigure of
// packages handshake and extended takes. Messages that are under way end by the rules
// that they began with. There are as many peers as in New.
func (e *Engine) Reconfigure(peers []Peer) {
	next := make([]core.Peer, len(peers))
	for rank := range peers {
		next[rank] = peers[rank].ofCore()
	}
	e.lock()
	defer e.unlock()
	e.core.Reconfigure(next)
}

// Reset makes the engine forget what it knows of a peer that was restarted, so
// that sends to it are no longer refused. Messages under way are not touched. The error
// matches ErrRank.
func (e *Engine) Reset(rank int) error {
	if rank < 0 || rank >= e.size || rank == e.rank {
		return fmt.Errorf("rank %d: %w", rank, ErrRank)
	}
	e.lock()
	defer e.unlock()
	e.core.Reset(rank)
	return nil
}

// PeerLeft notes that a rank of this rank's job has called MPI_Finalize. Its transport says so only if there was a
// connection before.
func (e *Engine) PeerLeft(rank int) {
	e.receiveBatch(slices.Index(e.transports, e.outlets[rank].tr), []RxPacket{{Kind: RxLeft, Peer: rank}}, 0)
}

// PeerFailed ends the receives that are posted to a stand-in of this process, as its kernel failed, by a
// *PeerFailedError. If there are none, and a message was sent to the stand-in since its last one, it ends the next
// receive that is posted before another message of the stand-in. Receives from any source, and messages that have
// begun, go on.
func (e *Engine) PeerFailed(rank int, cause error) {
	e.lock()
	defer e.unlock()
	e.core.PeerFailed(rank, cause)
}

// Close ends the engine. No new operation is accepted; handshakes that are
// under way are given until ctx is done to end well, then everything still
// posted fails with ErrClosed and the transports are closed. It returns ctx's
// error if something had to be cut off.
//
// Before the transports are closed, and while ctx is not done, it answers peers that retransmit what has arrived here, as
// an ACK was lost: until none can, by LingerUntil of packages handshake and extended. Over reliable transports there is
// no need.
func (e *Engine) Close(ctx context.Context) error {
	e.lock()
	if e.core.IsClosed() {
		e.mu.Unlock()
		return nil
	}
	e.core.Drain()
	drained := make(chan struct{})
	e.idle = drained
	e.unlock()
	e.group.Waiting.Add(1) // packets are awaited until the drain ends
	e.group.Watch()
	defer time.AfterFunc(core.AbortTime, func() {
		e.lock()
		defer e.unlock()
		e.core.DropAborts()
	}).Stop()

	var err error
	select {
	case <-drained:
	case <-ctx.Done():
		select {
		case <-drained:
		default:
			err = ctxerr.Of(ctx)
		}
	}
	if err == nil {
		e.lock()
		e.core.Linger()
		answered := make(chan struct{})
		e.idle = answered
		e.unlock()
		select {
		case <-answered:
		case <-ctx.Done():
		}
	}

	e.lock()
	if err != nil {
		e.cutOff = e.core.Moving()
	}
	e.idle = nil
	e.heartbeats.notify()
	close(e.stop)
	e.timer.Stop()
	e.core.Shut()
	out := e.core.End()
	completeAll(out)
	e.dealWith(out)
	e.mu.Unlock()
	return cmp.Or(err, closeTransports(e))
}
