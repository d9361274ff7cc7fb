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
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// session is one program that has a rank. One goroutine reads its frames and starts its operations; another one, or the
// one that polls, sees them end; the outbox writes the answers.
type session struct {
	ledger
	server *Server
	stream wire.Stream
	in     *wire.Reader
	out    *wire.Outbox
	who    wire.Credentials
	dev    mpe.Device
	since  time.Time
	// polling is how the session is polled, if its frames go through rings.
	polling *polling
	// arena is where payload may lie, which the program may change at any time.
	arena []byte

	// ctx ends with the session. idle has a value when the last one of its goroutines, of which there are running, has
	// ended.
	ctx     context.Context
	running atomic.Int32
	idle    chan struct{}

	// ends are the operations that run. Without polling, ended has a value when there may be some to be answered.
	ends  ends
	ended chan struct{}

	// What follows belongs to the reading goroutine: groups are the members of the communicators of calls, and posting is
	// memory to post one; deferredAnswers is set while answers are deferred.
	queues          queues
	unsent          unsent
	groups          groups
	posting         collective.Operation
	deferredAnswers bool

	// spare are operations that are over, by the length in bits of the sizes of their memories.
	spare [65]sync.Pool
}

func newSession(s *Server, in *wire.Reader, who wire.Credentials) *session {
	return &session{
		server: s, in: in, who: who, idle: make(chan struct{}, 1), ended: make(chan struct{}, 1),
		ledger: ledger{
			limits: s.opts.Limits, memory: &s.memory, less: make(chan struct{}, 1),
			ops: make(map[uint64]*operation), claims: make(map[int]int),
		},
	}
}

// describePeers returns the PEERs, and makes a queue of sends for each.
func (s *session) describePeers() (peers []byte, err error) {
	size := s.dev.Size()
	s.queues = queues{of: make([][]*operation, size+1)}
	for rank := range size {
		p, err := s.dev.Peer(rank)
		if err != nil {
			return nil, wire.Refuse(wire.Failed, "rank %d: %v", rank, err)
		}
		if p.NoComms && rank != s.rank {
			s.queues.byOrder = append(s.queues.byOrder, rank)
		}
		peers = wire.AppendPeer(peers, rank, p)
	}
	return peers, nil
}

// open uses the connection from now on as its Stream.
func (s *session) open() {
	s.in.From((*incoming)(s))
	s.out = wire.NewOutbox(s.stream)
	s.ends.added = func() { wire.Notify(s.ended) }
	if p := s.polling; p != nil {
		s.out.Rings, s.arena, s.ends.added = p.rings, p.rings.Arena(), p.ended
		s.in.FromRings(p.rings)
	}
	s.out.Failed = func() {
		s.stream.HangUp()
		s.wakeReader()
	}
}

// spawn runs a goroutine of the session.
func (s *session) spawn(f func()) {
	s.running.Add(1)
	s.stream.Go(func() {
		f()
		if s.running.Add(-1) == 0 {
			wire.Notify(s.idle)
		}
	})
}

// wait waits for a value on c.
func (s *session) wait(c <-chan struct{}) {
	_ = s.stream.Await(context.Background(), c) // which never ends
}

// incoming is what the program sends. Read first flushes the answers that are deferred.
type incoming session

func (in *incoming) Read(b []byte) (int, error) {
	(*session)(in).flushDeferred()
	return in.stream.Read(b)
}

// flushDeferred writes the answers that are deferred.
func (s *session) flushDeferred() {
	if s.deferredAnswers {
		s.deferredAnswers = false
		s.out.Flush()
	}
}

// run serves a program that has a rank until it goes, breaks a rule, or ctx is done.
func (s *session) run(ctx context.Context) {
	s.open()
	s.server.opts.Log(s.event(EventAttached, nil))
	session, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.ctx = session
	writing, written := context.WithCancel(context.Background())
	s.spawn(func() { s.out.Run(writing) })
	if s.polling == nil {
		s.spawn(s.answerEnds)
	}
	stop := context.AfterFunc(ctx, func() {
		s.stream.StopReading()
		s.wakeReader()
	})
	why := s.read()
	stop()
	if ctx.Err() != nil {
		why = wire.Refuse(wire.Closing, "the daemon is shutting down")
	}
	s.wakeReader()

	gone := fmt.Errorf("the program with pid %d that had attached to rank %d has gone: %w", s.who.PID, s.rank, mpe.ErrCancelled)
	// What ends from here on ends because the session does, which the last frame says.
	s.out.Close()
	cancel(gone)
	// A goroutine that writes to a program that does not read is stuck until then.
	stopHangUp := s.stream.After(wire.FarewellTime, s.stream.HangUp)
	last := farewell(why)
	if last == nil {
		s.stream.HangUp()
	}
	s.cancelAll(gone)
	s.server.release(s, errors.Is(why, wire.ErrBye))
	if last != nil {
		s.out.CloseWith(last)
	}
	written()
	for s.running.Load() > 0 {
		s.wait(s.idle)
	}
	stopHangUp()
	s.dropClaims(gone)
	s.ledger.close(true)
	s.stream.Close()
	s.server.opts.Log(s.event(EventDetached, why))
}

// farewell is the last frame, if the program may still read it.
func farewell(why error) wire.Item {
	if errors.Is(why, wire.ErrBye) {
		return wire.Raw(wire.AppendHeader(nil, wire.FrameBye, 0))
	}
	if refusal, ok := asRefusal(why); ok {
		return wire.Raw(wire.RefusedFrame(refusal))
	}
	return nil
}

// wakeReader wakes the reading goroutine, if it waits for room.
func (s *session) wakeReader() {
	s.endSession()
	if s.polling != nil {
		wire.Notify(s.polling.wake)
	}
}

// answerEnds answers operations that have ended, and carries messages while there are any to wait for, until the session
// ends.
func (s *session) answerEnds() {
	for {
		await := s.dev.Await
		if s.ends.idle() {
			await = s.stream.Await
		}
		if await(s.ctx, s.ended) != nil {
			return
		}
		s.ends.answer(true)
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

// cancelAll ends everything that is under way for a program that has gone.
func (s *session) cancelAll(cause error) {
	s.mu.Lock()
	ops := slices.SortedFunc(maps.Values(s.ops), func(a, b *operation) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Unlock()
	for _, op := range ops {
		if op.begun && s.ends.take(op) {
			// Whether it could be canceled or had gone too far is the
			// rank's business, which may go on with the buffer.
			_, _ = op.detach(cause, true)
			op.dev.Free()
		}
	}
	s.ledger.close(false)
}

// dropClaims drops the messages of matched probes that the program has not received, as it is gone.
func (s *session) dropClaims(gone error) {
	for tag, peer := range s.claims {
		dev, err := s.dev.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: peer, Tag: tag, Comm: mpe.ClaimComm, AnyDatatype: true})
		if err != nil {
			continue // the rank has closed
		}
		_, _ = (&operation{s: s, dev: dev.(ender)}).detach(gone, true)
		dev.Free()
	}
}
