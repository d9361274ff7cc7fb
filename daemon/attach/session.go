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

// session serves a program attached to a rank. One goroutine reads the program's frames and starts its operations.
// Another goroutine, or the polling goroutine, handles completed operations. The outbox writes the answers.
type session struct {
	ledger
	server      *Server
	stream      wire.Stream
	reader      *wire.Reader
	outbox      *wire.Outbox
	credentials wire.Credentials
	dev         mpe.Device
	attachedAt  time.Time
	// polling is nil unless frames are exchanged through rings.
	polling *polledSession
	// arena is the memory shared with the program for payload. awaited is shared memory that the rank reads until all
	// operations are done. The program may modify both at any time. Both are nil if frames pass through a socket.
	arena   []byte
	awaited *wire.Awaited

	// ctx is cancelled when the session ends. running is the number of the session's goroutines; the last one to exit
	// signals allExited.
	ctx       context.Context
	running   atomic.Int32
	allExited chan struct{}

	// completions tracks the running operations. If polling is nil, completionReady is signaled when operations may
	// need answers.
	completions     completionQueue
	completionReady chan struct{}

	// Only the reading goroutine accesses the fields below. groups caches the members of communicators, and posting is
	// scratch memory for a call. deferredAnswers is set while the outbox holds deferred answers.
	queues          queues
	unsent          missingPayload
	groups          commCache
	posting         collective.Operation
	deferredAnswers bool

	// spare holds operations for reuse, indexed by the bit length of their buffer size.
	spare [65]sync.Pool
}

func newSession(s *Server, in *wire.Reader, who wire.Credentials) *session {
	return &session{
		server: s, reader: in, credentials: who, allExited: make(chan struct{}, 1), completionReady: make(chan struct{}, 1),
		ledger: ledger{
			limits: s.opts.Limits, memory: &s.memory, refusalRead: make(chan struct{}, 1),
			ops: make(map[uint64]*operation), claims: make(map[int]int),
		},
	}
}

// describePeers returns the PEER frames and creates the queues for all peers.
func (s *session) describePeers() (peers []byte, err error) {
	size := s.dev.Size()
	s.queues = queues{byPeer: make([][]*operation, size+1)}
	for rank := range size {
		p, err := s.dev.Peer(rank)
		if err != nil {
			return nil, wire.NewRefusal(wire.Failed, "rank %d: %v", rank, err)
		}
		if p.NoComms && rank != s.rank {
			s.queues.orderedPeers = append(s.queues.orderedPeers, rank)
		}
		peers = wire.AppendPeer(peers, rank, p)
	}
	return peers, nil
}

// openStream sets up the session's reader and outbox to use its stream.
func (s *session) openStream() {
	s.reader.SetSource((*flushingReader)(s))
	s.outbox = wire.NewOutbox(s.stream)
	s.completions.onCompletion = func() { wire.Notify(s.completionReady) }
	if p := s.polling; p != nil {
		s.outbox.Rings, s.arena, s.awaited, s.completions.onCompletion = p.rings, p.rings.Arena(), p.rings.Awaited(),
			p.notifyCompletion
		s.reader.UseRings(p.rings)
	}
	s.outbox.OnFailure = func() {
		s.stream.HangUp()
		s.wakeReader()
	}
}

// spawn starts a goroutine of the session.
func (s *session) spawn(f func()) {
	s.running.Add(1)
	s.stream.Go(func() {
		f()
		if s.running.Add(-1) == 0 {
			wire.Notify(s.allExited)
		}
	})
}

// awaitSignal waits for a value on c without a time limit.
func (s *session) awaitSignal(c <-chan struct{}) {
	_ = s.stream.Await(context.Background(), c) // this context is never cancelled
}

// flushingReader reads a session's frames. Its Read method first flushes deferred answers.
type flushingReader session

func (in *flushingReader) Read(b []byte) (int, error) {
	(*session)(in).flushDeferred()
	return in.stream.Read(b)
}

// flushDeferred writes the deferred answers.
func (s *session) flushDeferred() {
	if s.deferredAnswers {
		s.deferredAnswers = false
		s.outbox.Flush()
	}
}

// run serves a program until the program detaches or violates the protocol, or ctx is done.
func (s *session) run(ctx context.Context) {
	s.openStream()
	s.server.opts.Log(s.newEvent(EventAttached, nil))
	session, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	s.ctx = session
	writing, written := context.WithCancel(context.Background())
	s.spawn(func() { s.outbox.Run(writing) })
	if s.polling == nil {
		s.spawn(s.answerEnds)
	}
	stop := context.AfterFunc(ctx, func() {
		s.stream.StopReading()
		s.wakeReader()
	})
	why := s.readFrames()
	stop()
	if ctx.Err() != nil {
		why = wire.NewRefusal(wire.Closing, "the daemon is shutting down")
	}
	s.wakeReader()

	gone := fmt.Errorf("the program with pid %d that was attached to rank %d is gone: %w", s.credentials.PID, s.rank,
		mpe.ErrCancelled)
	// From here on, operations fail because the session is ending. The last frame reports the reason.
	s.outbox.Close()
	cancel(gone)
	// HangUp unblocks a goroutine whose write is blocked because the program does not read.
	stopHangUp := s.stream.After(wire.LingerTimeout, s.stream.HangUp)
	last := lastFrame(why)
	if last == nil {
		s.stream.HangUp()
	}
	s.cancelAll(gone)
	s.server.release(s, errors.Is(why, wire.ErrDetached))
	if last != nil {
		s.outbox.CloseWith(last)
	}
	written()
	for s.running.Load() > 0 {
		s.awaitSignal(s.allExited)
	}
	stopHangUp()
	s.dropClaims(gone)
	s.ledger.close(true)
	s.stream.Close()
	s.server.opts.Log(s.newEvent(EventDetached, why))
}

// lastFrame returns the frame that reports to the program how the session ended, or nil if the program is gone.
func lastFrame(why error) wire.Item {
	if errors.Is(why, wire.ErrDetached) {
		return wire.RawFrame(wire.AppendHeader(nil, wire.FrameBye, 0))
	}
	if refusal, ok := asRefusal(why); ok {
		return wire.RawFrame(wire.RefusedFrame(refusal))
	}
	return nil
}

// wakeReader wakes up the reading goroutine so that it notices the end of the session.
func (s *session) wakeReader() {
	s.endSession()
	if s.polling != nil {
		wire.Notify(s.polling.wake)
	}
}

// answerEnds sends the answers of completed operations until the session ends. While operations are running, it also
// polls the rank.
func (s *session) answerEnds() {
	for {
		await := s.dev.Await
		if s.completions.idle() {
			await = s.stream.Await
		}
		if await(s.ctx, s.completionReady) != nil {
			return
		}
		s.completions.answer(true)
	}
}

// readFrames handles frames until the program is gone or violates the protocol, and returns the reason.
func (s *session) readFrames() (err error) {
	if s.polling != nil {
		err = s.polling.run()
	}
	for err == nil {
		if s.tooManyRefusals() {
			s.flushDeferred()
			s.awaitSignal(s.refusalRead)
			continue
		}
		err = s.handleFrame()
	}
	if errors.Is(err, io.EOF) {
		return errors.New("connection closed without BYE")
	}
	return err
}

// cancelAll cancels all operations of a program that is gone.
func (s *session) cancelAll(cause error) {
	s.mu.Lock()
	ops := slices.SortedFunc(maps.Values(s.ops), func(a, b *operation) int { return cmp.Compare(a.ID, b.ID) })
	s.mu.Unlock()
	for _, op := range ops {
		if op.started && s.completions.remove(op) {
			// The rank either cancels the operation or continues the transfer with the buffer.
			_, _ = op.detach(cause, true)
			op.rankOp.Free()
		}
	}
	s.ledger.close(false)
}

// dropClaims drops the messages of matched probes that the program never received.
func (s *session) dropClaims(gone error) {
	for tag, peer := range s.claims {
		dev, err := s.dev.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: peer, Tag: tag, Comm: mpe.ClaimComm,
			AnyDatatype: true})
		if err != nil {
			continue // the rank is closed
		}
		_, _ = (&operation{session: s, rankOp: dev.(notifyingOp)}).detach(gone, true)
		dev.Free()
	}
}
