package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/colltest"
)

// world is an in-memory cluster of fake ranks, which match messages by searching lists. A send is copied and
// ends immediately, unless it is synchronous.
type world struct {
	mu    sync.Mutex
	hosts []int
	ranks []*fakeRank
	// byOrder is the number of a rank whose messages match by order, or 0.
	byOrder int
}

type fakeRank struct {
	mpe.BasicDevice
	w    *world
	rank int
	// startErr, if not nil, is returned by every Start.
	startErr error
	sent     []*fakeOp // unmatched sends to this rank
	posted   []*fakeOp // unmatched receives
	arrived  chan struct{}
	probed   bool // a probe is waiting for arrived
	open     int  // number of operations in progress
	kept     int  // number of operations that have not been freed
	starts   int
	spare    []*fakeOp
}

func newWorld(size int, hosts ...int) *world {
	w := &world{hosts: hosts}
	for r := range size {
		w.ranks = append(w.ranks, &fakeRank{w: w, rank: r, arrived: make(chan struct{})})
	}
	return w
}

func (w *world) Hosts() []int { return w.hosts }

func (w *world) Device(rank int) (mpe.Device, error) {
	if !slices.Contains(w.hosts, rank) {
		return nil, fmt.Errorf("rank %d: %w", rank, mpe.ErrRank)
	}
	return w.ranks[rank], nil
}

func (w *world) openOps(rank int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ranks[rank].open
}

func (w *world) keptOps(rank int) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ranks[rank].kept
}

// awaited lists the tags of the rank's posted receives that the program awaits.
func (r *fakeRank) awaited() (tags []int) {
	r.w.mu.Lock()
	defer r.w.mu.Unlock()
	for _, op := range r.posted {
		if op.awaited != nil && op.awaited() {
			tags = append(tags, op.op.Tag)
		}
	}
	return tags
}

func (r *fakeRank) Rank() int { return r.rank }
func (r *fakeRank) Size() int { return len(r.w.ranks) }

func (r *fakeRank) Peer(rank int) (mpe.PeerInfo, error) {
	return mpe.PeerInfo{Profile: "extended", Kind: "software", Address: fmt.Sprintf("127.0.0.1:%d", rank),
		SmallTags: rank == 1, NoEmpty: true, NoComms: rank > 0 && rank == r.w.byOrder}, nil
}

func (r *fakeRank) StartCollective(c *collective.Operation) (mpe.Op, error) {
	return colltest.StartOn(r, c)
}

func (r *fakeRank) Wire(rank int) (collective.Wire, error) { return mpe.WireOf(r.Peer(rank)) }

func (r *fakeRank) Close(context.Context) error { panic("the server closes no device") }

// fakeOp is reused after it has been freed. Using it after that is an error: it panics or affects the next
// operation.
type fakeOp struct {
	r      *fakeRank
	op     mpe.Operation
	from   int
	data   []byte
	ended  bool
	freed  bool
	queued bool          // an unmatched send
	done   chan struct{} // created by the goroutine that waits
	st     mpe.Status
	err    error
	notify chan<- struct{}
	then   func()
	// awaited is nil, or reports whether the program awaits the operation.
	awaited func() bool
}

// use panics if the operation has been freed. The caller must hold the world's lock.
func (op *fakeOp) use() {
	if op.freed {
		panic("an operation is used after its Free")
	}
}

func (r *fakeRank) Start(req mpe.Operation) (mpe.Op, error) {
	w := r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	r.starts++
	switch {
	case r.startErr != nil:
		return nil, r.startErr
	case req.Peer < mpe.AnySource || req.Peer >= len(w.ranks):
		return nil, fmt.Errorf("rank %d: %w", req.Peer, mpe.ErrRank)
	case req.Tag > 1000:
		return nil, fmt.Errorf("tag %d: %w", req.Tag, mpe.ErrTag)
	}
	op := r.operation()
	op.op = req
	r.open++
	r.kept++
	if req.Kind == mpe.OpRecv {
		for i, msg := range r.sent {
			if fits(req.Peer, req.Tag, req.Comm, msg) {
				r.sent = slices.Delete(r.sent, i, i+1)
				match(op, msg)
				return op, nil
			}
		}
		r.posted = append(r.posted, op)
		return op, nil
	}
	op.data = append(op.data[:0], req.Buf...)
	dst := w.ranks[req.Peer]
	op.queued = true
	if req.Kind == mpe.OpSend {
		op.end(sendStatus(op), nil)
	}
	for i, recv := range dst.posted {
		if fits(recv.op.Peer, recv.op.Tag, recv.op.Comm, op) {
			dst.posted = slices.Delete(dst.posted, i, i+1)
			match(recv, op)
			return op, nil
		}
	}
	dst.sent = append(dst.sent, op)
	if dst.probed {
		close(dst.arrived)
		dst.arrived, dst.probed = make(chan struct{}), false
	}
	return op, nil
}

// operation returns an operation. It reuses a freed one if possible.
func (r *fakeRank) operation() *fakeOp {
	last := len(r.spare) - 1
	if last < 0 {
		return &fakeOp{r: r, from: r.rank}
	}
	op := r.spare[last]
	r.spare = r.spare[:last]
	*op = fakeOp{r: r, from: r.rank, data: op.data}
	return op
}

// recycle keeps an operation for reuse if it has been freed and its message has been matched.
func (op *fakeOp) recycle() {
	if op.freed && !op.queued {
		op.r.spare = append(op.r.spare, op)
	}
}

func fits(source, tag int, comm uint32, msg *fakeOp) bool {
	return (source == mpe.AnySource || source == msg.from) && (tag == mpe.AnyTag || tag == msg.op.Tag) &&
		comm == msg.op.Comm
}

func sendStatus(op *fakeOp) mpe.Status {
	return mpe.Status{Peer: op.op.Peer, Send: true, Bytes: int64(len(op.data)), Tag: op.op.Tag, Comm: op.op.Comm,
		Datatype: op.op.Datatype}
}

func match(recv, msg *fakeOp) {
	n := copy(recv.op.Buf, msg.data)
	var err error
	if n < len(msg.data) {
		err = &mpe.TruncatedError{Source: msg.from, Posted: int64(n), Sent: int64(len(msg.data))}
	}
	recv.end(messageStatus(msg), err)
	if !msg.ended {
		msg.end(sendStatus(msg), nil)
	}
	msg.queued = false
	msg.recycle()
}

func messageStatus(msg *fakeOp) mpe.Status {
	return mpe.Status{Peer: msg.from, Bytes: int64(len(msg.data)), Words: uint32(len(msg.data)+3) / 4, Tag: msg.op.Tag,
		Comm:     msg.op.Comm,
		Datatype: msg.op.Datatype,
		Phases:   handshake.Phases{Start: 1, Request: 2, Clear: 3, Data: 4, Ack: 5, Retransmissions: 6}}
}

func (op *fakeOp) end(st mpe.Status, err error) {
	if op.ended {
		return
	}
	op.ended, op.st, op.err = true, st, err
	op.r.open--
	if op.done != nil {
		close(op.done)
	}
	if op.notify != nil {
		select {
		case op.notify <- struct{}{}:
		default:
		}
	}
	if op.then != nil {
		op.then()
	}
}

func (op *fakeOp) OnEnd(then func(), awaited func() bool) {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
	op.use()
	op.then, op.awaited = then, awaited
	if op.ended {
		then()
	}
}

func (op *fakeOp) Await(ctx context.Context) (*mpe.Status, error) {
	op.r.w.mu.Lock()
	op.use()
	if op.ended {
		defer op.r.w.mu.Unlock()
		return &op.st, op.err
	}
	op.done = make(chan struct{})
	op.r.w.mu.Unlock()
	select {
	case <-op.done:
		return &op.st, op.err
	case <-ctx.Done():
	}
	op.cancelAll(waitError(op, context.Cause(ctx)))
	return &op.st, op.err
}

func (op *fakeOp) Result() (*mpe.Status, error) { return nil, nil }

func (op *fakeOp) LibraryData() *any { return nil }

// waitError returns an error that is as similar to the engine's as is possible outside the engine's package.
func waitError(op *fakeOp, cause error) error {
	wait := handshake.Wait{Local: uint32(op.r.rank), Remote: uint32(op.op.Peer), State: handshake.WaitRequest}
	return &wire.Error{
		Text:   fmt.Sprintf("rank %d waits for rank %d: %v", op.r.rank, op.op.Peer, cause),
		Causes: []error{&mpe.WaitError{Wait: wait, Queued: 3, Network: errors.New("unreachable")}, cause},
	}
}

func (op *fakeOp) cancelAll(err error) {
	w := op.r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	op.use()
	if op.ended {
		return
	}
	op.queued = false
	same := func(other *fakeOp) bool { return other == op }
	op.r.posted = slices.DeleteFunc(op.r.posted, same)
	if op.op.Kind != mpe.OpRecv {
		dst := w.ranks[op.op.Peer]
		dst.sent = slices.DeleteFunc(dst.sent, same)
	}
	op.end(mpe.Status{}, err)
}

func (op *fakeOp) Cancel() {
	op.cancelAll(fmt.Errorf("rank %d: %w", op.r.rank, mpe.ErrCancelled))
}

func (op *fakeOp) Test() (mpe.Status, bool, error) {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
	op.use()
	return op.st, op.ended, op.err
}

func (op *fakeOp) Notify(c chan<- struct{}) {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
	op.use()
	op.notify = c
	if op.ended && c != nil {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (r *fakeRank) Probe(ctx context.Context, m mpe.Match, wait bool) (mpe.Status, bool, error) {
	for {
		r.w.mu.Lock()
		for _, msg := range r.sent {
			if fits(m.Source, m.Tag, m.Comm, msg) {
				defer r.w.mu.Unlock()
				return messageStatus(msg), true, nil
			}
		}
		arrived := r.arrived
		r.probed = r.probed || wait
		r.w.mu.Unlock()
		if !wait {
			return mpe.Status{}, false, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return mpe.Status{}, false, fmt.Errorf("rank %d probes for rank %d: %w", r.rank, m.Source, ctx.Err())
		}
	}
}

func (op *fakeOp) Free() {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
	op.use()
	if !op.ended {
		panic("an operation is freed before it is done")
	}
	op.freed = true
	op.r.kept--
	op.recycle()
}

func (r *fakeRank) Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
