package attach

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// session is one program that has a rank. One goroutine reads its frames and
// starts its operations; watchers see them end; the outbox writes the answers.
type session struct {
	server *Server
	stream Stream
	in     *frameReader
	out    *outbox
	who    Credentials
	rank   int
	dev    mpe.Device
	since  time.Time
	// offer is memory for the program, if frames go through rings, and polling is how that
	// is polled then.
	offer   *offer
	polling *polling
	// arena is where payload may lie, which the program may change at any time.
	arena []byte

	// ctx ends with the session. idle has a value when the last one of its goroutines, of
	// which there are running, has ended.
	ctx     context.Context
	running atomic.Int32
	idle    chan struct{}

	// byOrder are the peers that know no communicators.
	byOrder []int32

	// sendQueues are of sends and calls that have not been started, by peer, and turns
	// those of them that are first; groups are the members of the communicators of
	// calls, and posting is memory to post one; current is the watcher that has most
	// likely room; deferredAnswers is set while answers are deferred. All of them belong
	// to the reading goroutine.
	sendQueues      map[int32]sendQueue
	unsent          unsent
	ready           []*operation
	groups          groups
	posting         collective.Operation
	watchers        []*watcher
	current         *watcher
	deferredAnswers bool

	// spare are operations that are over, by the length in bits of the sizes
	// of their memories.
	spare [65]sync.Pool

	mu    sync.Mutex
	ops   map[uint64]*operation
	bytes int64
	// work is how much memory calls may need beside their bytes, and listed what the
	// communicators of calls take; drawn is what the session has of what is common to
	// all.
	work, listed, drawn int64
	// kept are large buffers for later operations, the oldest first.
	kept      [][]byte
	keptBytes int64
	ending    bool
	probes    int
	// claims are the sources of the messages that matched probes have taken, by number.
	claims map[int32]int32
	// refusals counts answers to operations that were refused and that the
	// program has not read; less has a value when it does.
	refusals int
	less     chan struct{}
	gone     bool
}

// maxRefusals is how many answers to refused operations may wait for the
// program. They are the only answers that are not bounded by its operations.
const maxRefusals = 1024

// maxProbes is how many probes of a program may wait at once: each costs a
// goroutine.
const maxProbes = 64

func newSession(s *Server, in *frameReader, who Credentials) *session {
	return &session{
		server: s, in: in, who: who, idle: make(chan struct{}, 1), less: make(chan struct{}, 1),
		sendQueues: make(map[int32]sendQueue), ops: make(map[uint64]*operation),
	}
}

// open uses the connection from now on as a Stream, whose frames have come from from until now.
func (s *session) open(stream Stream, from *source) {
	s.stream = stream
	from.Reader = (*incoming)(s)
	s.out = newOutbox(stream)
	if s.polling != nil {
		s.out.rings, s.in.ahead = s.polling.rings, directLen
		s.arena = s.polling.rings.arena()
	}
	s.out.failed = func() {
		stream.HangUp()
		s.wakeReader()
	}
}

// spawn runs a goroutine of the session.
func (s *session) spawn(f func()) {
	s.running.Add(1)
	s.stream.Go(func() {
		f()
		if s.running.Add(-1) == 0 {
			notify(s.idle)
		}
	})
}

// wait waits for a value on c.
func (s *session) wait(c <-chan struct{}) {
	_ = s.stream.Await(context.Background(), c) // which never ends
}

// incoming is what the program sends. Read first flushes the
// answers that are deferred.
type incoming session

func (in *incoming) Read(b []byte) (int, error) {
	(*session)(in).flushDeferred()
	return in.stream.Read(b)
}

// flushDeferred writes the answers that are deferred.
func (s *session) flushDeferred() {
	if s.deferredAnswers {
		s.deferredAnswers = false
		s.out.flush()
	}
}

// errBye: the program has sent BYE.
var errBye = errors.New("detached cleanly")

// run serves the program until it goes, breaks a rule, or ctx is done, and says
// why it has ended.
func (s *session) run(ctx context.Context) (why error) {
	session, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.ctx = session
	writing, written := context.WithCancel(context.Background())
	s.spawn(func() { s.out.run(writing) })
	stop := context.AfterFunc(ctx, func() {
		s.stream.StopReading()
		s.wakeReader()
	})
	why = s.read()
	stop()
	if ctx.Err() != nil {
		why = refused(Closing, "the daemon is shutting down")
	}
	s.wakeReader()

	gone := fmt.Errorf("the program with pid %d that had attached to rank %d has gone: %w", s.who.PID, s.rank, mpe.ErrCancelled)
	// What ends from here on ends because the session does, which the last
	// frame says.
	s.out.seal()
	cancel(gone)
	// A goroutine that writes to a program that does not read is stuck until then.
	stopHangUp := s.stream.After(farewellTime, s.stream.HangUp)
	if last := farewell(why); last == nil {
		s.stream.HangUp()
		s.cancelAll(gone)
		s.server.release(s, errors.Is(why, errBye))
	} else {
		s.cancelAll(gone)
		s.server.release(s, errors.Is(why, errBye))
		s.out.closeWith(last)
	}
	written()
	for s.running.Load() > 0 {
		s.wait(s.idle)
	}
	stopHangUp()
	s.dropClaims(gone)
	s.returnMemory(true)
	s.stream.Close()
	return why
}

// farewell is the last frame, if the program may still read it.
func farewell(why error) item {
	var refusal *RefusedError
	broken, ok := errors.AsType[*protocolError](why)
	switch {
	case errors.Is(why, errBye):
		return raw(appendHeader(nil, frameBye, 0))
	case errors.As(why, &refusal):
	case ok:
		refusal = refused(Violation, "%v", broken)
	default:
		return nil
	}
	return raw(refusedFrame(refusal))
}

// wakeReader wakes the reading goroutine, if it waits for room.
func (s *session) wakeReader() {
	s.mu.Lock()
	s.gone = true
	s.mu.Unlock()
	notify(s.less)
	if s.polling != nil {
		notify(s.polling.wake)
	}
}

// read handles frames until the program is gone, and says why it is.
func (s *session) read() (err error) {
	if s.polling != nil {
		err = s.polling.run()
	}
	for err == nil {
		if s.full() {
			s.flushDeferred()
			s.wait(s.less)
			continue
		}
		err = s.frame()
	}
	if errors.Is(err, io.EOF) {
		return errors.New("connection closed without BYE")
	}
	return err
}

// frame handles a frame.
func (s *session) frame() error {
	if err := s.in.next(); err != nil {
		return err
	}
	if err := s.handle(s.in.typ); err != nil {
		return err
	}
	return s.in.end()
}

func (s *session) handle(t frameType) error {
	switch t {
	case frameStart:
		return s.readStart()
	case frameCall:
		return s.readCall()
	case frameData:
		return s.readData()
	case frameReduced:
		return s.readReduced()
	case frameProbe:
		return s.readProbe()
	case frameCancel:
		id, err := s.in.readID()
		if err == nil {
			s.cancel(s.find(id))
		}
		return err
	case frameAbort:
		id, cause, err := s.in.readAbort()
		if err == nil {
			s.abort(s.find(id), cause)
		}
		return err
	case frameBye:
		return errBye
	}
	return violation("%v is not a frame that a program sends once it has a rank", t)
}

// cancelAll ends everything that is under way for a program that has gone.
func (s *session) cancelAll(cause error) {
	s.mu.Lock()
	ops := slices.SortedFunc(maps.Values(s.ops), func(a, b *operation) int { return cmp.Compare(a.id, b.id) })
	s.mu.Unlock()
	for _, op := range ops {
		if op.runs() && op.take() {
			// Whether it could be canceled or had gone too far is the
			// rank's business, which may go on with the buffer.
			_, _ = s.detach(op, cause, true)
			op.dev.Free()
		}
	}
	s.returnMemory(false)
}

// endedContext returns a context that ended with a cause.
func endedContext(cause error) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(cause)
	return ctx
}
