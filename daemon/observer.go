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
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// queueLen is how many log lines wait for a slow log before more are lost.
const queueLen = 1024

// Observer logs events of engines. On the packet path it only counts and copies; run
// writes the lines. Each kind of event of a rank gets at most one line a second.
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
	mu sync.Mutex
	// handshake and extended are of peers of these profiles: a reason has another level
	// and text in each.
	handshake, extended profileLimits
	failed              []limiter // by peer, and last of no peer in particular
	network             limiter
}

type profileLimits struct {
	drops  [mpe.NumDropReasons]limiter
	events [mpe.NumEvents]limiter
}

func (l *rankLimits) of(extended bool) *profileLimits {
	if extended {
		return &l.extended
	}
	return &l.handshake
}

// lineKind is the kind of event that a line reports.
type lineKind uint8

const (
	lineDrop lineKind = iota
	lineEvent
	lineFailed
	lineNetwork
	lineAttach
)

// line is the content of a log line, by value, so that queueing it allocates nothing.
type line struct {
	kind       lineKind
	rank, peer int
	suppressed uint64

	reason mpe.DropReason
	event  mpe.Event
	header protocol.Header
	// extended: the peer's profile is, and the header is xheader.
	extended bool
	xheader  protocol.ExtHeader
	from     netip.AddrPort
	size     int // of the received packet in bytes; -1 without one
	head     [protocol.HeaderLen]byte
	err      error
	send     bool
	program  attach.Event
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
func (o *Observer) Dropped(rank, peer int, d mpe.Drop) {
	ln := line{kind: lineDrop, rank: rank, peer: peer, reason: d.Reason, header: d.Header, size: -1}
	ln.setExtended(d.Extended)
	if !o.log.Core().Enabled(dropLevel(d.Reason, ln.extended)) {
		return
	}
	if a := d.Packet; a != nil {
		ln.from, ln.size = a.From, len(a.Bytes)
		copy(ln.head[:], a.Bytes)
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.of(ln.extended).drops[d.Reason], &ln)
}

// Noted implements mpe.Observer.
func (o *Observer) Noted(rank, peer int, n mpe.Note) {
	ln := line{kind: lineEvent, rank: rank, peer: peer, event: n.Event, header: n.Header, err: n.Err}
	ln.setExtended(n.Extended)
	if !o.log.Core().Enabled(eventLevel(n.Event)) {
		return
	}
	limits := o.ranks[rank]
	o.take(limits, &limits.of(ln.extended).events[n.Event], &ln)
}

// setExtended copies the header of a packet of the extended profile; h is nil for others.
func (ln *line) setExtended(h *protocol.ExtHeader) {
	if h != nil {
		ln.extended, ln.xheader = true, *h
	}
}

// Done implements mpe.Observer. It logs failures, except for those caused by the caller
// or by the end of the daemon.
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

// run writes the lines until ctx is done, and then the queued ones.
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

// drain writes the queued lines.
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

// flush logs how many events were suppressed and have not occurred since. It does not log
// while it holds a lock that the packet path takes.
func (o *Observer) flush() {
	o.flushPrograms()
	now := o.now()
	for rank, limits := range o.ranks {
		var logs []func()
		more := func(l *limiter, level zapcore.Level, text string, of zap.Field) {
			if n := l.rest(now); n > 0 {
				logs = append(logs, func() { o.log.Log(level, text, zap.Int("rank", rank), of, suppressedField(n)) })
			}
		}
		limits.mu.Lock()
		for _, extended := range []bool{false, true} {
			of := limits.of(extended)
			for i := range of.drops {
				r := mpe.DropReason(i)
				more(&of.drops[i], dropLevel(r, extended), packetDropped, zap.Stringer("reason", r))
			}
			for i := range of.events {
				e := mpe.Event(i)
				more(&of.events[i], eventLevel(e), eventText[e], zap.Stringer("event", e))
			}
		}
		for peer := range limits.failed {
			of := zap.Skip()
			if peer < len(limits.failed)-1 {
				of = zap.Int("peer", peer)
			}
			more(&limits.failed[peer], zapcore.WarnLevel, operationFailed, of)
		}
		more(&limits.network, zapcore.WarnLevel, networkError, zap.Skip())
		limits.mu.Unlock()
		for _, log := range logs {
			log()
		}
	}
}
