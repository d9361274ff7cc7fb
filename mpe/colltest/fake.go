package colltest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Fake is an in-memory device that implements StartCollective by calling StartOn.
type Fake interface {
	collective.Caller
	Start(op mpe.Operation) (mpe.Op, error)
	Await(ctx context.Context, c <-chan struct{}) error
}

// StartOn starts a collective call on a device that has point-to-point messages only. A separate goroutine executes the
// call. If the call fails, the other ranks get no abort. StartOn is for fakes: an engine executes calls itself.
func StartOn(dev Fake, c *collective.Operation) (mpe.Op, error) {
	call := &fakeCall{Operation: *c, dev: dev, wake: make(chan struct{}, 1), done: make(chan struct{})}
	if err := call.prepare(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	call.cancel = cancel
	call.mu.Lock()
	defer call.mu.Unlock()
	if !call.advance() {
		go call.run(ctx)
	}
	return call, nil
}

// fakeCall is a collective call that is executed by exchanging point-to-point messages.
type fakeCall struct {
	collective.Operation
	dev       Fake
	algorithm *coll.Algorithm
	reduce    func(in, inout []byte) error
	scratch   []byte
	blank     [protocol.WordLen]byte
	wake      chan struct{} // receives a value at the end of a message
	done      chan struct{}
	cancel    context.CancelCauseFunc

	mu       sync.Mutex
	progress *coll.Progress
	inFlight []fakeMessage
	// computing is the number of running calls of the user's function.
	computing int
	notify    chan<- struct{}
	onEnd     func()
	failErr   error
	ended     bool
}

type fakeMessage struct {
	coll.Step
	number int
	op     mpe.Op
}

func (x *fakeCall) prepare() error {
	limits, err := x.Check(x.dev)
	if err == nil {
		err = x.CheckAlgorithm()
	}
	if err != nil {
		return err
	}
	call := &x.Call
	switch {
	case x.Algorithm != "":
		x.algorithm, err = coll.Find(call.Collective, x.Algorithm)
	case limits.ByOrder:
		x.algorithm, err = coll.ByOrder(call)
	default:
		x.algorithm = coll.Algorithms(call.Collective)[0] // it supports every call
	}
	schedule := new(coll.Schedule)
	if err == nil {
		err = x.CheckMessages(x.dev, limits, x.algorithm, schedule)
	}
	if err == nil {
		err = x.algorithm.Make(schedule, call)
	}
	if err != nil {
		return err
	}
	if x.reduce = x.User; x.Reduces() && x.User == nil {
		f, err := op.Lookup(x.Op, x.Type)
		if err != nil {
			return err
		}
		x.reduce = func(in, inout []byte) error { f(inout, in, inout); return nil }
	}
	x.scratch, x.progress = make([]byte, schedule.Scratch), new(coll.Progress)
	x.progress.Begin(schedule)
	return nil
}

// run advances the call until it ends.
func (x *fakeCall) run(ctx context.Context) {
	for {
		err := x.dev.Await(ctx, x.wake)
		x.mu.Lock()
		if err != nil && !x.advance() {
			x.cancelAll(ctx)
			if x.CancelUser != nil {
				x.CancelUser(err)
			}
		}
		ended := x.advance()
		x.mu.Unlock()
		if err != nil && !ended { // only a call of the user's function is in progress
			ctx = context.Background()
		}
		if ended {
			return
		}
	}
}

// advance executes the call as far as it can without waiting, and reports whether the call is done.
func (x *fakeCall) advance() bool {
	for !x.ended {
		step, number, ok := x.progress.Next()
		switch {
		case ok && x.failErr == nil:
			x.step(step, number)
		case x.collectDone():
		case len(x.inFlight)+x.computing > 0:
			return false
		default:
			x.end()
		}
	}
	return true
}

func (x *fakeCall) end() {
	x.ended = true
	close(x.done)
	signal(x.notify)
	if x.onEnd != nil {
		x.onEnd()
	}
	if x.cancel != nil {
		x.cancel(nil)
	}
}

// step begins a step.
func (x *fakeCall) step(s *coll.Step, number int) {
	message := fakeMessage{Step: *s, number: number}
	var err error
	switch {
	case s.Kind == coll.StepForward, s.Piece != 0 && s.Piece < s.Len:
		err = errors.New("a fake cannot forward messages while they arrive")
	case s.Sends() || s.Receives():
		message.op, err = x.post(s)
	case x.User != nil && (s.Kind == coll.StepReduce || s.Kind == coll.StepReduceRight):
		x.computing++
		go x.user(message)
		return
	case s.Kind != coll.StepJoin:
		err = x.compute(s)
	}
	switch {
	case err != nil:
		x.fail(&message, err)
	case message.op != nil:
		message.op.Notify(x.wake)
		x.inFlight = append(x.inFlight, message)
	default:
		x.progress.MarkDone(number)
	}
}

// post posts the message of a step.
func (x *fakeCall) post(step *coll.Step) (mpe.Op, error) {
	o := mpe.Operation{
		Kind: mpe.OpSend, Peer: x.Members[step.Peer], Tag: x.Tag, Comm: x.Comm,
		Datatype: x.Datatype, AnyDatatype: x.AnyDatatype,
	}
	if w, _ := x.dev.Wire(o.Peer); w.NoComms {
		o.Tag, o.Comm = 0, 0
	}
	at, n := step.From, step.Len
	if step.Receives() {
		if o.Kind, at = mpe.OpRecv, step.Into; at.Buf == coll.Blank { // another rank's token may be longer
			n = protocol.WordLen
		}
	}
	var err error
	if o.Buf, err = x.bytesAt(at, n); err != nil {
		return nil, err
	}
	return x.dev.Start(o)
}

// user executes a step that requires calling the user's function.
func (x *fakeCall) user(message fakeMessage) {
	err := x.compute(&message.Step)
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.computing--; err != nil {
		x.fail(&message, err)
	} else {
		x.progress.MarkDone(message.number)
	}
	signal(x.wake)
}

// compute executes a step without a message.
func (x *fakeCall) compute(step *coll.Step) error {
	reads, writes := step.Extents()
	from, err := x.bytesAt(step.From, reads)
	if err != nil {
		return err
	}
	into, err := x.bytesAt(step.Into, writes)
	if err != nil {
		return err
	}
	switch step.Kind {
	case coll.StepPack:
		step.Pack(into, from)
		return nil
	case coll.StepReduce:
		return x.reduce(from, into)
	case coll.StepReduceRight:
		if err := x.reduce(into, from); err != nil {
			return err
		}
	}
	copy(into, from)
	return nil
}

// bytesAt returns the memory of a location.
func (x *fakeCall) bytesAt(at coll.Loc, n int) ([]byte, error) {
	b := map[coll.Buffer][]byte{coll.SendBuf: x.Send, coll.RecvBuf: x.Recv, coll.Scratch: x.scratch,
		coll.Blank: x.blank[:]}[at.Buf]
	if at.Off < 0 || n < 0 || at.Off > len(b)-n {
		return nil, fmt.Errorf("%d bytes at %d of the %v, which has %d", n, at.Off, at.Buf, len(b))
	}
	return b[at.Off : at.Off+n : at.Off+n], nil
}

// collectDone processes completed messages, and reports whether there were any.
func (x *fakeCall) collectDone() bool {
	before := len(x.inFlight)
	for i := 0; i < len(x.inFlight); {
		message := x.inFlight[i]
		st, ended, err := message.op.Test()
		if !ended {
			i++
			continue
		}
		x.inFlight = append(x.inFlight[:i], x.inFlight[i+1:]...)
		x.complete(&message, &st, err)
	}
	return len(x.inFlight) < before
}

// complete records the outcome of a message.
func (x *fakeCall) complete(message *fakeMessage, st *mpe.Status, err error) {
	message.op.Free()
	if err == nil && message.Receives() && message.Into.Buf != coll.Blank && st.Bytes != int64(message.Len) {
		err = fmt.Errorf("it has %d bytes: %w", st.Bytes, collective.ErrMismatch)
	}
	if err != nil {
		x.fail(message, err)
		return
	}
	x.progress.MarkDone(message.number)
}

// fail makes the call end because a step failed, and cancels the other messages.
func (x *fakeCall) fail(message *fakeMessage, err error) {
	if x.failErr != nil {
		return
	}
	e := &collective.StepError{Collective: x.Call.Collective, Algorithm: x.algorithm.Name, Number: message.number,
		Kind: message.Kind, Peer: -1, Bytes: message.Len, Err: err}
	if message.Sends() || message.Receives() {
		e.Peer = x.Members[message.Peer]
	}
	x.failErr = e
	for _, u := range x.inFlight {
		u.op.Cancel()
	}
}

// cancelAll cancels all messages, because the caller's context ctx is done.
func (x *fakeCall) cancelAll(ctx context.Context) {
	all := x.inFlight
	x.inFlight = nil
	for i := range all {
		st, err := all[i].op.Await(ctx) // at once
		x.complete(&all[i], st, err)
	}
}

// Await implements mpe.Op.
func (x *fakeCall) Await(ctx context.Context) (*mpe.Status, error) {
	if _, ended, err := x.Test(); ended {
		return new(mpe.Status), err
	}
	select {
	case <-x.done:
	case <-ctx.Done():
		x.cancel(context.Cause(ctx))
		<-x.done
	}
	return new(mpe.Status), x.failErr
}

// Result implements mpe.Op.
func (x *fakeCall) Result() (*mpe.Status, error) { return nil, nil }

// LibraryData implements mpe.Op.
func (x *fakeCall) LibraryData() *any { return nil }

// Test implements mpe.Op.
func (x *fakeCall) Test() (mpe.Status, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	return mpe.Status{}, x.advance(), x.failErr
}

// Cancel does nothing: if this rank left the call, the other ranks would wait for it.
func (x *fakeCall) Cancel() {}

// Notify implements mpe.Op.
func (x *fakeCall) Notify(c chan<- struct{}) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.notify = c
	if x.ended {
		signal(c)
	}
}

// OnEnd registers the callback then, which the call invokes when it ends, as an mpe.Request does.
func (x *fakeCall) OnEnd(then func(), _ func() bool) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.onEnd = then
	if x.ended {
		then()
	}
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // also if c is nil
	}
}

// Free implements mpe.Op.
func (x *fakeCall) Free() {}
