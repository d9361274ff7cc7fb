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

// Peer configures a peer of an engine.
type Peer struct {
	// Handshake configures the protocol of a cloudfpga or v0.9 peer. A non-nil Extended configures a peer of the
	// extended profile instead. The engine sets Local, Remote and Reliable in both.
	Handshake handshake.Config
	Extended  *extended.Config
	// Transport carries the packets; several peers may share one.
	Transport Transport
	// Unobserved disables the Observer's notifications of completed messages to and from the peer. Those messages may
	// then be stamped with the time of an earlier event, which saves a clock reading per message: a large part of the
	// latency of shared memory.
	Unobserved bool
	// Recorder receives the packets exchanged with the peer. If it is nil, no packets are recorded.
	Recorder PacketRecorder
	// Keeper stores those parts of a cloudfpga or v0.9 peer's state that must outlive this process. If it is nil,
	// nothing is stored.
	Keeper Keeper
	// Kind and Address are for display.
	Kind    state.Kind
	Address string
}

// Config configures an engine.
type Config struct {
	// Rank is the local rank.
	Rank int
	// Peers holds one entry per rank of the cluster, in rank order. The local rank's entry is ignored.
	Peers []Peer
	// Limits bounds the waiting receives and messages of each communicator. The credit of extended peers is
	// added to the limit on messages.
	Limits match.Limits
	// Oversubscribed means that the host runs more ranks than it has cores. Callers that poll then yield the processor
	// to other processes.
	Oversubscribed bool
	// Collectives configures collective calls.
	Collectives collective.Config
	// Observer is notified of every event worth counting or logging. If it is nil, there are no notifications.
	Observer Observer
	// Calls records the operations that the rank's program posts. If it is nil, they are not recorded.
	Calls CallRecorder
	// OnFailure, if not nil, is called before an operation returns an error, in the goroutine of the operation's
	// caller. It may block for a while.
	OnFailure func()
	// MakeReport returns this rank's report for ranks that ask for it: at most extended.MaxReport bytes. It may call
	// the engine. If MakeReport is nil, the engine does not answer.
	MakeReport func() []byte
}

// Engine is the message passing engine of one rank. It drives a core, for which it provides a lock, a clock, a timer,
// random numbers, and the goroutines that read, write and compute.
type Engine struct {
	// mu guards the core. The engine holds it while the core processes an event.
	mu   engineLock
	core *core.Core

	rank, size int
	observer   Observer // or nil
	failure    failure
	makeReport func() []byte

	leasing  leasing
	requests spareRequests
	// postCount is the number of operations that callers have posted. The lock guards it.
	postCount uint32

	clock clock
	timer *time.Timer
	// tickAt is the time at which timeouts must be handled next (a tick), or Never. While a goroutine polls, it runs
	// the tick; otherwise, the timer does.
	tickAt atomic.Int64
	// heartbeats holds channels that the next tick closes. The lock guards it.
	heartbeats heartbeats
	// group polls the sources, one per transport that supports polling. group.Waiting counts the requests, probes and
	// Awaits for which callers sleep.
	group   progress.Group
	sources []*source
	// transports holds the transports by network number. processedUntil holds, per transport, the time up to which the
	// engine has processed all received packets.
	transports     []Transport
	processedUntil []handshake.Instant
	// outlets send packets, by peer.
	outlets    []outlet
	placements placementTable
	// hasCoalesced mirrors Outcome.Coalesced of the core, for readers without the lock.
	hasCoalesced atomic.Bool
	goroutines   sync.WaitGroup
	waiters      sync.Pool // of channels for Wait, each with a capacity of one
	// userReturned is closed when a user's function returns; idle is closed when the current phase of Close is
	// complete. The lock guards both.
	userReturned chan struct{}
	idle         chan struct{}
	stop         chan struct{} // closed by Close
	unfinished   []Waiting     // messages in progress when Close ran out of time
}

// New starts the engine of a rank. The engine takes ownership of the peers' transports; Close closes them.
func New(cfg Config) (*Engine, error) {
	if cfg.Rank < 0 || cfg.Rank >= len(cfg.Peers) {
		return nil, fmt.Errorf("rank %d is not one of the %d ranks of the cluster", cfg.Rank, len(cfg.Peers))
	}
	engine := &Engine{
		rank: cfg.Rank, size: len(cfg.Peers), observer: cfg.Observer, failure: failure{cfg.OnFailure},
		makeReport: cfg.MakeReport,
		clock:      clock(time.Now()), stop: make(chan struct{}), placements: placementTable{generation: 1},
		outlets: make([]outlet, len(cfg.Peers)),
	}
	engine.mu.engine, engine.leasing.clockStart = engine, processorClock()
	engine.timer = time.AfterFunc(time.Hour, (*owner)(engine).onTimer)
	engine.timer.Stop()
	engine.tickAt.Store(int64(core.Never))
	config := core.Config{
		Rank: cfg.Rank, Peers: make([]core.Peer, len(cfg.Peers)), Limits: cfg.Limits, Collectives: cfg.Collectives,
		Observer: cfg.Observer, Calls: cfg.Calls, Reports: cfg.MakeReport != nil,
	}
	config.Collectives.Oversubscribed = cfg.Oversubscribed
	for rank := range cfg.Peers {
		peer := &cfg.Peers[rank]
		config.Peers[rank] = peer.coreConfig()
		if rank == cfg.Rank {
			continue
		}
		if peer.Transport == nil {
			return nil, fmt.Errorf("rank %d: peer %d has no transport", cfg.Rank, rank)
		}
		id := slices.Index(engine.transports, peer.Transport)
		if id < 0 {
			id, engine.transports = len(engine.transports), append(engine.transports, peer.Transport)
		}
		config.Peers[rank].Network = networkOf(id, peer.Transport)
		engine.outlets[rank] = newOutlet(rank, peer)
		if peer.Extended == nil && engine.outlets[rank].handshakes == nil {
			return nil, fmt.Errorf("rank %d: peer %d: its transport carries the extended profile only", cfg.Rank, rank)
		}
		if memory, ok := peer.Transport.(MemoryTransport); ok {
			config.Peers[rank].Network.Memory, config.Shared = memory, memory
		}
	}
	engine.core = core.New(config, (*effects)(engine))
	if err := engine.start(cfg.Oversubscribed); err != nil {
		return nil, fmt.Errorf("rank %d: %w", cfg.Rank, err)
	}
	return engine, nil
}

// coreConfig returns a peer's configuration in the form that the core needs, except for its network.
func (p *Peer) coreConfig() core.Peer {
	return core.Peer{
		Handshake: p.Handshake, Extended: p.Extended, Unobserved: p.Unobserved, Recorder: p.Recorder, Keeper: p.Keeper,
		Kind: p.Kind, Address: p.Address,
	}
}

// networkOf returns a transport's configuration in the form that the core needs.
func networkOf(id int, tr Transport) core.Network {
	network := core.Network{ID: id, Reliable: tr.Reliable()}
	if p, ok := tr.(PollTransport); ok && p.CanPoll() {
		_, memory := tr.(MemoryTransport)
		network.Places = !memory
	}
	_, network.Datagrams = tr.(DatagramTransport)
	return network
}

// Rank returns the local rank.
func (e *Engine) Rank() int { return e.rank }

// Size returns the number of ranks in the cluster.
func (e *Engine) Size() int { return e.size }

// clock is the time at which an engine's clock started.
type clock time.Time

// now returns the time since the start.
func (c clock) now() handshake.Instant { return time.Since(time.Time(c)) }

// StartTime returns the start time of the engine's clock, with a monotonic clock reading.
func (e *Engine) StartTime() time.Time { return time.Time(e.clock) }

// lock takes the lock for an event.
func (e *Engine) lock() {
	e.mu.Lock()
	e.core.Begin(e.clock.now())
}

// recentTime is the maximum age at which an event's time may be reused for later events.
const recentTime = time.Millisecond

// canReuseTime reports whether an event that sends nothing may reuse the time of the last event, which is cheaper than
// reading the clock. A tick must be due soon after the last event, so that the reused time is never old. The caller
// holds the lock.
func (e *Engine) canReuseTime() bool {
	return e.core.IsQuiet() && e.tickAt.Load() <= int64(e.core.Now()+recentTime) && !e.group.Armed()
}

// unlock ends the event and releases the lock.
func (e *Engine) unlock() { unlockAfter(e, e.core.End()) }

// unlockAfter is like unlock, but for an event that the caller has already ended. The outcome of that event is out.
func unlockAfter(engine *Engine, out *core.Outcome) {
	applyOutcome(engine, out)
	engine.mu.Unlock()
}

// applyOutcome performs what the outcome of an event asks for.
func applyOutcome(e *Engine, out *core.Outcome) {
	if len(out.Completed) > 0 {
		completeAll(out)
	}
	if out.Rare {
		e.handleOutcome(out)
	}
	if soon := e.core.Now() + recentTime; int64(min(out.Deadline, soon)) < e.tickAt.Load() {
		// Tick soon only if the sources are being polled, because only then does the tick wake no goroutine.
		due := out.Deadline
		if !e.group.Armed() {
			due = min(due, soon)
		}
		if int64(due) < e.tickAt.Load() {
			e.tickAt.Store(int64(due))
			(*owner)(e).Armed()
		}
	}
	if out.Coalesced != e.hasCoalesced.Load() {
		e.hasCoalesced.Store(out.Coalesced)
	}
	if e.idle != nil && e.core.IsIdle() {
		close(e.idle)
		e.idle = nil
	}
}

// completeAll marks the completed requests of an event as complete and wakes their callers.
func completeAll(out *core.Outcome) {
	for i, r := range out.Completed {
		out.Completed[i] = nil
		requestOf(r).complete()
	}
	out.Completed = out.Completed[:0]
}

// handleOutcome processes those parts of an event's outcome that are rare.
func (e *Engine) handleOutcome(out *core.Outcome) {
	for _, wake := range out.Wake {
		wake()
	}
	for _, j := range out.Jobs {
		compute(e, j)
	}
	if out.Report { // in a goroutine, because makeReport acquires locks
		e.goroutines.Go(func() {
			text := e.makeReport()
			e.lock()
			defer e.unlock()
			e.core.Reports.Deliver(text)
		})
	}
	out.Clear()
}

// Reconfigure changes the settings that may change while messages are exchanged. Like Config.Peers, peers holds one
// entry per rank. Reconfigure reads only the addresses, which are for display, and the settings that packages handshake
// and extended can reconfigure. Messages in flight keep their settings.
func (e *Engine) Reconfigure(peers []Peer) {
	next := make([]core.Peer, len(peers))
	for rank := range peers {
		next[rank] = peers[rank].coreConfig()
	}
	e.lock()
	defer e.unlock()
	e.core.Reconfigure(next)
}

// Reset discards the state of a peer that was restarted, so that the engine no longer refuses sends to it. It does not
// affect messages in flight. The error matches ErrRank.
func (e *Engine) Reset(rank int) error {
	if rank < 0 || rank >= e.size || rank == e.rank {
		return fmt.Errorf("rank %d: %w", rank, ErrRank)
	}
	e.lock()
	defer e.unlock()
	e.core.Reset(rank)
	return nil
}

// PeerFinalized notes that a rank of this rank's job has called MPI_Finalize. The transport itself reports this only
// for peers that it had a connection to.
func (e *Engine) PeerFinalized(rank int) {
	e.receiveBatch(slices.Index(e.transports, e.outlets[rank].transport), []RxPacket{{Kind: RxPeerClosed, Peer: rank}}, 0)
}

// PeerFailed ends the receives posted to a stand-in of this process with a *PeerFailedError, because the stand-in's
// kernel failed. If no such receive is posted but the stand-in owes an answer (a message was sent to it after its last
// message arrived), the next receive fails instead, unless another message from the stand-in arrives first. Receives
// from any source and messages in transfer continue.
func (e *Engine) PeerFailed(rank int, cause error) {
	e.lock()
	defer e.unlock()
	e.core.PeerFailed(rank, cause)
}

// Close closes the engine. It refuses new operations, lets handshakes in progress complete until ctx is done, fails all
// remaining operations with ErrClosed, and closes the transports. If handshakes were still in progress when ctx was
// done, Close returns the cause of ctx.
//
// Before it closes the transports, Close continues to answer peers that retransmit because an ACK was lost, until
// the time that LingerUntil of packages handshake and extended returns, or until ctx is done. Reliable transports
// do not need this.
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
	e.group.Waiting.Add(1) // keeps the sources polled or watched
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
			err = ctxerr.Cause(ctx)
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
		e.unfinished = e.core.ActiveTransfers()
	}
	e.idle = nil
	e.heartbeats.notify()
	close(e.stop)
	e.timer.Stop()
	e.core.Shutdown()
	out := e.core.End()
	completeAll(out)
	e.handleOutcome(out)
	e.mu.Unlock()
	return cmp.Or(err, closeTransports(e))
}
