package control

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// outcomeTimeout is the time limit for the daemon to report the outcome of a cancelled operation.
const outcomeTimeout = time.Second

// operationContext is the context of a request that performs an operation. It outlives the caller's context until the
// daemon has answered, because only the daemon knows whether the message was transferred.
type operationContext struct {
	context.Context
	caller context.Context
	stop   context.CancelFunc
	detach func() bool
}

// newOperation returns the context of an operation. When ctx is done, the client closes its side of the connection. The
// daemon then cancels the operation and answers.
func (c *Client) newOperation(ctx context.Context) *operationContext {
	var conn atomic.Value
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	inner = httptrace.WithClientTrace(inner,
		&httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn.Store(i.Conn) }})
	op := &operationContext{Context: inner, caller: ctx, stop: stop}
	op.detach = context.AfterFunc(ctx, func() {
		if half, ok := conn.Load().(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			time.AfterFunc(outcomeTimeout, stop)
			return
		}
		stop()
	})
	return op
}

// cause returns the error of the operation. If no answer arrived because the caller's context was done, cause returns
// the cause of that context.
func (op *operationContext) cause(err error) error {
	if err != nil && op.Err() != nil && op.caller.Err() != nil {
		return context.Cause(op.caller)
	}
	return err
}

func (op *operationContext) end() {
	op.detach()
	op.stop()
}
