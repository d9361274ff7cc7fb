package control

import (
	"context"
	"net/http/httptrace"
	"sync/atomic"
	"time"
)

// answerTime is the time that the daemon has to report the outcome of a cancelled operation.
const answerTime = time.Second

// cancellable is the context of a request for an operation. After the end of its caller's context, it lasts
// until the daemon has answered: only the daemon knows the outcome of the message.
type cancellable struct {
	context.Context
	caller context.Context
	stop   context.CancelFunc
	detach func() bool
}

// cancellable returns the context of an operation. When ctx ends, this side of the connection is closed, upon
// which the daemon cancels the operation and answers.
func (c *Client) cancellable(ctx context.Context) *cancellable {
	var conn atomic.Value
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	inner = httptrace.WithClientTrace(inner,
		&httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) { conn.Store(i.Conn) }})
	op := &cancellable{Context: inner, caller: ctx, stop: stop}
	op.detach = context.AfterFunc(ctx, func() {
		if half, ok := conn.Load().(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
			time.AfterFunc(answerTime, stop)
			return
		}
		stop()
	})
	return op
}

// cause returns the error of the operation: the cause of the caller's context if its end prevented an answer.
func (op *cancellable) cause(err error) error {
	if err != nil && op.Err() != nil && op.caller.Err() != nil {
		return context.Cause(op.caller)
	}
	return err
}

func (op *cancellable) end() {
	op.detach()
	op.stop()
}
