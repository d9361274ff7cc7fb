package attach

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// world is a cluster of fake ranks in memory. Messages match by naive lists; a
// send is copied and ends at once, unless it is synchronous.
type world struct {
	mu    sync.Mutex
	hosts []int
	ranks []*fakeRank
}

type fakeRank struct {
	w    *world
	rank int
	// startErr fails every Start.
	startErr error
	sent     []*fakeOp // to this rank, unmatched
	posted   []*fakeOp // receives, unmatched
	arrived  chan struct{}
	open     int // operations that have not ended
	starts   int
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

func (r *fakeRank) Rank() int { return r.rank }
func (r *fakeRank) Size() int { return len(r.w.ranks) }

func (r *fakeRank) Peer(rank int) (mpe.PeerInfo, error) {
	return mpe.PeerInfo{Profile: "extended", Kind: "software", Address: fmt.Sprintf("127.0.0.1:%d", rank), SmallTags: rank == 1, NoEmpty: true}, nil
}

func (r *fakeRank) Close(context.Context) error { panic("the server closes no device") }

type fakeOp struct {
	r      *fakeRank
	op     mpe.Operation
	from   int
	data   []byte
	ended  bool
	done   chan struct{}
	st     mpe.Status
	err    error
	notify chan<- struct{}
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
	op := &fakeOp{r: r, op: req, from: r.rank, done: make(chan struct{})}
	r.open++
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
	op.data = slices.Clone(req.Buf)
	dst := w.ranks[req.Peer]
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
	close(dst.arrived)
	dst.arrived = make(chan struct{})
	return op, nil
}

func fits(source, tag int, comm uint32, msg *fakeOp) bool {
	return (source == mpe.AnySource || source == msg.from) && (tag == mpe.AnyTag || tag == msg.op.Tag) && comm == msg.op.Comm
}

func sendStatus(op *fakeOp) mpe.Status {
	return mpe.Status{Peer: op.op.Peer, Send: true, Bytes: int64(len(op.data)), Tag: op.op.Tag, Comm: op.op.Comm, Datatype: op.op.Datatype}
}

func match(recv, msg *fakeOp) {
	n := copy(recv.op.Buf, msg.data)
	var err error
	if n < len(msg.data) {
		err = &mpe.TruncatedError{Source: msg.from, Posted: int64(n), Sent: int64(len(msg.data))}
	}
	recv.end(messageStatus(msg), err)
	msg.end(sendStatus(msg), nil)
}

func messageStatus(msg *fakeOp) mpe.Status {
	return mpe.Status{Peer: msg.from, Bytes: int64(len(msg.data)), Words: uint32(len(msg.data)+3) / 4, Tag: msg.op.Tag, Comm: msg.op.Comm,
		Datatype: msg.op.Datatype, Phases: handshake.Phases{Start: 1, Request: 2, Clear: 3, Data: 4, Ack: 5, Repeats: 6}}
}

func (op *fakeOp) end(st mpe.Status, err error) {
	if op.ended {
		return
	}
	op.ended, op.st, op.err = true, st, err
	op.r.open--
	close(op.done)
	if op.notify != nil {
		select {
		case op.notify <- struct{}{}:
		default:
		}
	}
}

func (op *fakeOp) Wait(ctx context.Context) (mpe.Status, error) {
	select {
	case <-op.done:
		return op.st, op.err
	case <-ctx.Done():
	}
	op.takeBack(waitError(op, context.Cause(ctx)))
	return op.st, op.err
}

// waitError is as like the engine's as can be made outside of its package.
func waitError(op *fakeOp, cause error) error {
	return &unstartedError{
		text: fmt.Sprintf("rank %d waits for rank %d", op.r.rank, op.op.Peer), cause: cause,
		wait: &mpe.WaitError{Wait: handshake.Wait{Local: uint32(op.r.rank), Remote: uint32(op.op.Peer), State: handshake.WaitRequest}, Queued: 3, Network: errors.New("unreachable")},
	}
}

func (op *fakeOp) takeBack(err error) {
	w := op.r.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if op.ended {
		return
	}
	same := func(other *fakeOp) bool { return other == op }
	op.r.posted = slices.DeleteFunc(op.r.posted, same)
	if op.op.Kind != mpe.OpRecv {
		dst := w.ranks[op.op.Peer]
		dst.sent = slices.DeleteFunc(dst.sent, same)
	}
	op.end(mpe.Status{}, err)
}

func (op *fakeOp) Cancel() {
	op.takeBack(fmt.Errorf("rank %d: %w", op.r.rank, mpe.ErrCancelled))
}

func (op *fakeOp) Test() (mpe.Status, bool, error) {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
	return op.st, op.ended, op.err
}

func (op *fakeOp) Notify(c chan<- struct{}) {
	op.r.w.mu.Lock()
	defer op.r.w.mu.Unlock()
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

func (op *fakeOp) Free() {}

func (r *fakeRank) Await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
