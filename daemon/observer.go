package daemon

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/attach"
	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// queueLen is how many log lines wait for a slow log before more are lost.
const queueLen = 1024

// Observer logs what happens in engines. It is told on the packet path, and
// there does nothing but count and copy; Run writes the lines. Every kind of
// trouble of a rank gets at most one line a second.
type Observer struct {
	log *zap.Logger
	// profile is the dialect between two ranks, to explain a bad header.
	profile func(rank, peer int) protocol.Profile
	now     func() time.Duration
	lines   chan line
	lost    atomic.Uint64
	ranks   []*rankLimits  // by rank
	attach  []attachLimits // by rank, and last of no rank
}

var _ mpe.Observer = (*Observer)(nil)

// rankLimits are the limiters of one rank. The engine's lock does not guard
// them: TransportError comes without it.
type rankLimits struct {
	mu      sync.Mutex
	drops   [handshake.NumReasons]limiter
	events  [handshake.NumEvents]limiter
	failed  []limiter // by peer, and last of no peer in particular
	xdrops  [extended.NumReasons]limiter
	xevents [extended.NumEvents]limiter
	network limiter
}

// lineKind says what a line is about.
type lineKind uint8

const (
	lineDrop lineKind = iota
	lineEvent
	lineFailed
	lineNetwork
	lineExtendedDrop
	lineExtendedEvent
	lineAttach
)

// line is what a log line is made of, by value, so that queueing it allocates
// nothing.
type line struct {
	kind       lineKind
	rank, peer int
	suppressed uint64

	reason handshake.Reason
	event  handshake.Event
	header protocol.Header
	// Of the extended profile.
	xreason extended.Reason
	xevent  extended.Event
	xheader protocol.ExtHeader
	from    netip.AddrPort
	size    int // of what arrived, in bytes; -1 if nothing did
	head    [protocol.HeaderLen]byte
	err     error
	send    bool
	program attach.Event
}

// newObserver returns an observer of a cluster with the given number of ranks.
func newObserver(log *zap.Logger, size int, profile func(rank, peer int) protocol.Profile) *Observer {
	start := time.Now()
	o := &Observer{
		log: log, profile: profile, lines: make(chan line, queueLen), ranks: make([]*rankLimits, size), attach: make([]attachLimits, size+1),
		now: func() time.Duration { return time.Since(start) },
	}
	for i := range o.ranks {
		o.ranks[i] = &rankLimits{failed: make([]limiter, size+1)}
	}
	return o
}

// take asks a limiter of a rank, and queues the line if it may pass.
func (o *Observer) take(limits *rankLimits, l *limiter, ln *line) {
	limits.mu.Lock()
	suppressed, ok := l.take(o.now())
	limits.mu.Unlock()
	if !ok {
		return
	}
	ln.suppressed = suppressed
	o.queue(ln)
}

// queue queues a line to be written, unless the log is too slow.
func (o *Observer) queue(ln *line) {
	select {
	case o.lines <- *ln:
	default:
		o.lost.Add(1)
	}
}

// Dropped implements mpe.Observer.
func (o *Observer) Dropped(rank, peer int, a *mpe.RxPacket, act handshake.Action) {
	if !o.log.Core().Enabled(dropLevel(act.Reason)) {
		return
	}
	ln := line{kind: lineDrop, rank: rank, peer: peer, reason: act.Reason, header: act.Header, size: -1}
	if a != nil {
		ln.from, ln.size = a.From, len(a.Bytes)
		copy(ln.head[:], a.Bytes)
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.drops[act.Reason], &ln)
}

// Noted implements mpe.Observer.
func (o *Observer) Noted(rank, peer int, act handshake.Action) {
	if !o.log.Core().Enabled(eventLevel(act.Event)) {
		return
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.events[act.Event], &line{
		kind: lineEvent, rank: rank, peer: peer, event: act.Event, header: act.Header, err: act.Err,
	})
}

// DroppedExtended implements mpe.Observer.
func (o *Observer) DroppedExtended(rank, peer int, a *mpe.RxPacket, act *extended.Action) {
	if !o.log.Core().Enabled(extendedDropLevel(act.Reason)) {
		return
	}
	ln := line{kind: lineExtendedDrop, rank: rank, peer: peer, xreason: act.Reason, xheader: act.Header, size: -1}
	if a != nil {
		ln.from, ln.size = a.From, len(a.Bytes)
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.xdrops[act.Reason], &ln)
}

// NotedExtended implements mpe.Observer.
func (o *Observer) NotedExtended(rank, peer int, act *extended.Action) {
	if !o.log.Core().Enabled(extendedEventLevel(act.Event)) {
		return
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.xevents[act.Event], &line{
		kind: lineExtendedEvent, rank: rank, peer: peer, xevent: act.Event, xheader: act.Header, size: int(act.Length),
	})
}

// Done implements mpe.Observer. Only failures are logged, and not those that the
// caller or the end of the daemon brought about.
func (o *Observer) Done(rank int, s mpe.Status, err error) {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, mpe.ErrClosed) || errors.Is(err, mpe.ErrCancelled) {
		return
	}
	limits := o.ranks[rank]
	limiter := &limits.failed[len(limits.failed)-1]
	if s.Peer >= 0 {
		limiter = &limits.failed[s.Peer]
	}
	o.take(limits, limiter, &line{kind: lineFailed, rank: rank, peer: s.Peer, send: s.Send, err: err})
}

// TransportError implements mpe.Observer.
func (o *Observer) TransportError(rank int, err error) {
	if errors.Is(err, mpe.ErrTransportClosed) {
		return
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.network, &line{kind: lineNetwork, rank: rank, err: err})
}

// run writes the lines until ctx is done, and then those that are left.
func (o *Observer) run(ctx context.Context) {
	tick := time.NewTicker(perLine)
	defer tick.Stop()
	for {
		select {
		case ln := <-o.lines:
			o.write(&ln)
		case <-tick.C:
			o.flush()
		case <-ctx.Done():
			o.drain()
			return
		}
	}
}

// drain writes the lines that wait.
func (o *Observer) drain() {
	for {
		select {
		case ln := <-o.lines:
			o.write(&ln)
		default:
			return
		}
	}
}

// flush says how much was suppressed of what has stopped since. It does not log while it
// holds a lock that the packet path takes.
func (o *Observer) flush() {
	o.flushPrograms()
	now := o.now()
	for rank, limits := range o.ranks {
		var logs []func()
		more := func(l *limiter, what string, level zapcore.Level) {
			if n := l.rest(now); n > 0 {
				logs = append(logs, func() { o.log.Log(level, moreLine(rank, n, what)) })
			}
		}
		limits.mu.Lock()
		for r := range limits.drops {
			more(&limits.drops[r], "packets dropped: "+handshake.Reason(r).String(), dropLevel(handshake.Reason(r)))
		}
		for e := range limits.events {
			more(&limits.events[e], handshake.Event(e).String(), eventLevel(handshake.Event(e)))
		}
		for r := range limits.xdrops {
			more(&limits.xdrops[r], "packets dropped: "+extended.Reason(r).String(), extendedDropLevel(extended.Reason(r)))
		}
		for e := range limits.xevents {
			more(&limits.xevents[e], extended.Event(e).String(), extendedEventLevel(extended.Event(e)))
		}
		for peer := range limits.failed {
			more(&limits.failed[peer], failedText(peer), zapcore.WarnLevel)
		}
		more(&limits.network, "errors of the network", zapcore.WarnLevel)
		limits.mu.Unlock()
		for _, log := range logs {
			log()
		}
	}
}
