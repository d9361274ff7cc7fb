package standin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// roleCalls executes the calls of a role, one at a time, while the role's simulator runs.
type roleCalls struct {
	k         *rtlKernel
	rank      rankCalls
	port      *cosim.Port // under k.mu
	log       *zap.Logger
	pending   chan operation
	completed chan operation
	pause     backoff
}

// operation is a call of the role together with its result.
type operation struct {
	call cosim.Call
	data []byte
	st   mpe.Status
	err  error
}

// serve runs a simulator and executes the calls of its role.
func (c *roleCalls) serve(ctx context.Context, s *simulator) error {
	ctx, cancel := context.WithCancelCause(ctx)
	c.pending, c.completed = make(chan operation, 1), make(chan operation, 1)
	s.beforeStep, s.afterStep = c.beforeStep, c.afterStep
	var worker sync.WaitGroup
	worker.Go(func() {
		for op := range c.pending {
			c.execute(ctx, &op)
			c.completed <- op
		}
	})
	defer worker.Wait()
	defer cancel(errExited)
	defer close(c.pending)
	return s.serve(ctx)
}

// beforeStep passes the result of a completed call, if any, to the role.
func (c *roleCalls) beforeStep(ctx context.Context) error {
	select {
	case op := <-c.completed:
		return c.deliverResult(ctx, op)
	default:
		return nil
	}
}

// afterStep starts the next call of the role, if any.
func (c *roleCalls) afterStep() {
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	if call, data, ok := c.port.NextCall(); ok {
		c.pending <- operation{call: call, data: data} // never blocks: the role has one call at a time
	}
}

// execute executes a call of the role. After a failure, it pauses, so that a role that retries at once does not spin.
func (c *roleCalls) execute(ctx context.Context, op *operation) {
	opts, peer := mpe.Options{Datatype: op.call.Datatype()}, int(op.call.Rank)
	if op.call.IsSend() {
		op.st, op.err = c.rank.Send(ctx, peer, op.data, opts)
	} else {
		opts.AnyTag = true
		op.st, op.err = c.rank.Recv(ctx, peer, op.data, opts)
	}
	if op.err == nil {
		c.pause.reset()
		c.k.counters.succeeded.Add(1)
		return
	}
	if ctx.Err() != nil || errors.Is(op.err, mpe.ErrClosed) {
		return
	}
	if errors.Is(op.err, handshake.ErrTruncated) {
		op.err = fmt.Errorf("%w: soMPIif has a count of %d words at cycle %d: the role must receive exactly the "+
			"number of words sent", op.err, op.call.Words, op.call.Cycle)
		c.k.onFailure(op.err)
	}
	c.k.counters.errors.Add(1)
	d := c.pause.next()
	c.log.Warn("call of the role failed", zap.Stringer("call", op.call), zap.Error(op.err),
		zap.Duration("again_after", d))
	_ = sleep(ctx, d) // serve notices when ctx ends
}

// deliverResult passes the result of a call to the role. After a failed receive, it makes the port return the call
// again, because the deployed engine cannot report a failure before the first line of a message.
func (c *roleCalls) deliverResult(ctx context.Context, op operation) error {
	c.k.mu.Lock()
	defer c.k.mu.Unlock()
	switch {
	case op.err != nil && ctx.Err() != nil:
		return nil // the connection ends too; its error describes the simulator
	case errors.Is(op.err, mpe.ErrClosed):
		return op.err
	case op.call.IsSend():
		c.port.CompleteSend(op.err == nil)
	case op.err == nil:
		c.port.CompleteReceive(op.st.Words)
	default:
		c.port.Retry()
	}
	return nil
}
