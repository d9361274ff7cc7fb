package daemon

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxQueuedLines is the maximum number of queued log lines. Observer drops further lines until the log catches up.
const maxQueuedLines = 1024

// Observer logs events from engines and attached programs, at most one line per second for each topic. On the packet
// path, it only counts and copies; run writes the lines.
type Observer struct {
	log *zap.Logger
	// profile returns the protocol profile used between two ranks. The observer needs it to explain an invalid header.
	profile func(rank, peer int) protocol.Profile
	now     func() time.Duration
	// onFailure is called for each failed operation.
	onFailure func(rank, peer int, operation state.Operation, err error)
	lines     chan logLine
	lost      atomic.Uint64

	// mu guards limits. The engines' locks do not suffice: engines call TransportError without holding one.
	mu     sync.Mutex
	limits map[topic]*lineLimiter
}

var _ mpe.Observer = (*Observer)(nil)

// lineKind is the kind of event that a log line reports.
type lineKind uint8

const (
	// lineDrop reports dropped packets, and lineEvent an event of the engine. Their topics include the reason or event.
	lineDrop lineKind = iota
	lineEvent
	// lineFailed reports failed operations, separately for each peer.
	lineFailed
	// lineNetwork reports an error of a rank's transport, lineAttach an event of an attached program, and lineControl an
	// error of the control socket.
	lineNetwork
	lineAttach
	lineControl
)

// topic is the key for rate limiting: lines with equal topics share a limit.
type topic struct {
	kind lineKind
	// code is a state.DropReason, a state.Event or an attach.EventKind, depending on the field kind.
	code uint8
	// extended is set if the peer uses the extended profile, because the profile changes the level and text of a drop
	// reason.
	extended bool
	rank     int // negative: none
	peer     int // for lineFailed; negative: no particular peer
}

// logLine is the content of a log line. It is passed by value, so that queueing does not allocate.
type logLine struct {
	topic      topic
	peer       int // negative: unknown
	suppressed uint64

	header      protocol.Header
	extHeader   protocol.ExtHeader // if topic.extended
	from        netip.AddrPort
	size        int // size of the received packet in bytes; -1: no packet
	headerBytes [protocol.HeaderLen]byte
	reason      string // of an mpe.RxBroken
	err         error
	send        bool
	program     attach.Event
}

// newObserver returns an Observer that writes to log.
func newObserver(log *zap.Logger, profile func(rank, peer int) protocol.Profile) *Observer {
	start := time.Now()
	return &Observer{
		log: log, profile: profile, lines: make(chan logLine, maxQueuedLines), limits: make(map[topic]*lineLimiter),
		now:       func() time.Duration { return time.Since(start) },
		onFailure: func(int, int, state.Operation, error) {},
	}
}

// enqueue queues a line. It suppresses the line if the topic was logged within minLineInterval, and drops it if the
// queue is full.
func (o *Observer) enqueue(ln *logLine) {
	o.mu.Lock()
	l := o.limits[ln.topic]
	if l == nil {
		l = new(lineLimiter)
		o.limits[ln.topic] = l
	}
	suppressed, ok := l.allow(o.now(), ln.err)
	o.mu.Unlock()
	if !ok {
		return
	}
	ln.suppressed = suppressed
	select {
	case o.lines <- *ln:
	default:
		o.lost.Add(1)
	}
}

// Dropped implements mpe.Observer.
func (o *Observer) Dropped(rank, peer int, drop mpe.Drop) {
	if !o.log.Core().Enabled(dropLevel(drop.Reason, drop.Extended != nil)) {
		return
	}
	ln := logLine{topic: topic{kind: lineDrop, code: uint8(drop.Reason), rank: rank, peer: -1}, peer: peer,
		header: drop.Header,
		size:   -1}
	ln.setExtended(drop.Extended)
	if a := drop.Packet; a != nil {
		ln.from, ln.size = a.SourceAddr, len(a.Bytes)
		copy(ln.headerBytes[:], a.Bytes)
		if a.Kind == mpe.RxBroken {
			ln.reason = string(a.Bytes)
		}
	}
	o.enqueue(&ln)
}

// Noted implements mpe.Observer.
func (o *Observer) Noted(rank, peer int, note mpe.Note) {
	if note.Event == state.EventUnreachable {
		o.onFailure(rank, peer, state.OperationConnection, &mpe.PeerLostError{Rank: peer, Event: note.Event})
	}
	if !o.log.Core().Enabled(eventLevel(note.Event)) {
		return
	}
	ln := logLine{topic: topic{kind: lineEvent, code: uint8(note.Event), rank: rank, peer: -1}, peer: peer,
		header: note.Header,
		err:    note.Err}
	ln.setExtended(note.Extended)
	o.enqueue(&ln)
}

// setExtended copies h, the header of a packet of the extended profile. h is nil for other packets.
func (ln *logLine) setExtended(h *protocol.ExtHeader) {
	if h != nil {
		ln.topic.extended, ln.extHeader = true, *h
	}
}

// Done implements mpe.Observer. It logs failures, except those caused by the caller or by the daemon's shutdown.
func (o *Observer) Done(rank int, status mpe.Status, err error) {
	if err == nil || isCallerCancel(err) {
		return
	}
	operation := state.OperationReceive
	if status.Send {
		operation = state.OperationSend
	}
	o.onFailure(rank, status.Peer, operation, err)
	o.enqueue(&logLine{topic: topic{kind: lineFailed, rank: rank, peer: status.Peer}, peer: status.Peer,
		send: status.Send, err: err})
}

// CallFailed implements mpe.Observer. It logs nothing, because Done logs the failures of the call's messages.
func (o *Observer) CallFailed(rank int, err error) {
	if !isCallerCancel(err) {
		o.onFailure(rank, -1, state.OperationCollective, err)
	}
}

// TransportError implements mpe.Observer.
func (o *Observer) TransportError(rank int, err error) {
	if !errors.Is(err, mpe.ErrTransportClosed) {
		o.enqueue(&logLine{topic: topic{kind: lineNetwork, rank: rank, peer: -1}, peer: -1, err: err})
	}
}

// ProgramEvent logs an event from an attached program. It limits the rate of lines, because a program can cause any
// number of events.
func (o *Observer) ProgramEvent(e attach.Event) {
	o.enqueue(&logLine{topic: topic{kind: lineAttach, code: uint8(e.Kind), rank: e.Rank, peer: -1}, peer: -1, program: e})
}

// requestRefused logs a refused request on the control socket. It limits the rate of lines, because a caller can cause
// any number of refusals.
func (o *Observer) requestRefused(err error) {
	o.enqueue(&logLine{topic: topic{kind: lineControl, rank: -1, peer: -1}, peer: -1, err: err})
}

// run writes lines until ctx is done, and then the lines left in the queue.
func (o *Observer) run(ctx context.Context) {
	tick := time.NewTicker(minLineInterval)
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

// flush logs how many events were suppressed for each topic that has had no new line since, and the last error among
// them. It never logs while it holds a lock needed by the packet path.
func (o *Observer) flush() {
	now := o.now()
	type summary struct {
		count uint64
		err   error
	}
	suppressed := make(map[topic]summary)
	o.mu.Lock()
	for t, l := range o.limits {
		if n, err := l.takeSuppressed(now); n > 0 {
			suppressed[t] = summary{n, err}
		}
	}
	o.mu.Unlock()
	inOrder := func(a, b topic) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.code, b.code), cmp.Compare(a.rank, b.rank),
			cmp.Compare(a.peer, b.peer))
	}
	for _, t := range slices.SortedFunc(maps.Keys(suppressed), inOrder) {
		level, text, of := t.describe()
		s := suppressed[t]
		o.log.Log(level, text, rankField("rank", t.rank), rankField("peer", t.peer), of, zap.Error(s.err),
			suppressedField(s.count))
	}
}
