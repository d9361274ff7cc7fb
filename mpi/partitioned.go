package mpi

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Partitioned is a send or a receive of a message in partitions (section 4.2). It can be started any number of
// times. A send transmits its message once all partitions are ready. All partitions of a receive arrive
// together, with the message.
//
// A send matches the receive with the same peer, communicator and tag, in the order of the calls of PsendInit and
// PrecvInit. Each send has a private channel and sends its number to the matching receive, so that no other message
// matches.
type Partitioned struct {
	mu   sync.Mutex
	call call
	// channel is the number that serves as the tag of the messages. In a receive, it is 0 until channelRecv has
	// received it into channelBytes.
	channel      int
	channelRecv  mpe.Op
	channelBytes [channelLen]byte
	// ready marks the partitions of an active send that are ready. notReady is the number of the other partitions.
	ready    []bool
	notReady int
	active   bool
	// op is the operation of a message that has been posted. If posting failed, err is set instead. wakeup receives a
	// value when either is set, and notify when the message is complete or has failed.
	op           mpe.Op
	err          error
	wakeup       chan struct{}
	notify       chan<- struct{}
	outcomeTaken bool // the outcome has been returned
}

// Offsets added to a communicator's number for the messages of partitioned communication. Messages with the first
// offset carry channel numbers and have the program's tags. Messages with the second offset carry data and have channel
// numbers as tags.
const (
	channelNumOffset  = 2
	channelDataOffset = 3

	channelLen = 4
)

var errNoChannel = errors.New("the matching send is not known: a wait for it ended early, or the " +
	"rank was lost")

// PsendInit describes a send of a buffer that contains all partitions contiguously.
func (c *Comm) PsendInit(b Buffer, partitions, dest, tag int) (*Partitioned, error) {
	return c.partitioned(call{comm: c, op: "PsendInit", kind: mpe.OpSend, peer: dest, tag: tag}, &b, partitions)
}

// PrecvInit describes a receive. It matches the one send that has the given source and tag; wildcards are not
// allowed.
func (c *Comm) PrecvInit(b Buffer, partitions, source, tag int) (*Partitioned, error) {
	return c.partitioned(call{comm: c, op: "PrecvInit", kind: mpe.OpRecv, peer: source, tag: tag}, &b, partitions)
}

// partitioned implements PsendInit and PrecvInit. A send transmits the number of its channel at once, in a message that
// the matching receive has posted a receive for, so the two match even if neither is ever started.
func (c *Comm) partitioned(k call, buffer *Buffer, partitions int) (*Partitioned, error) {
	switch {
	case k.peer == AnySource:
		return nil, k.failf(ErrRank, "a partitioned receive must name its source")
	case k.tag == AnyTag:
		return nil, k.failf(ErrTag, "a partitioned receive must have a tag")
	case partitions < 0:
		return nil, k.failf(ErrArg, "%d partitions", partitions)
	}
	p := &Partitioned{wakeup: make(chan struct{}, 1), ready: make([]bool, partitions)}
	if err := k.setBuffer(buffer); err != nil {
		return nil, err
	}
	p.call = k
	var o mpe.Operation
	if err := p.call.buildOperation(&o); err != nil || k.peer == ProcNull {
		return p.orRelease(err)
	}
	world := c.members[k.peer].worldRank
	if c.proc.peers[world].NoComms {
		return p.orRelease(k.failf(ErrComm,
			"the wire to rank %d carries no communicators, which partitioned communication needs", k.peer))
	}
	o = mpe.Operation{Kind: k.kind, Peer: int(world), Tag: k.tag, Comm: c.number | channelNumOffset,
		Buf: p.channelBytes[:]}
	if k.isSend() {
		p.channel = 1 + int((c.channelCount.Add(1)-1)%math.MaxInt32)
		binary.LittleEndian.PutUint32(p.channelBytes[:], uint32(p.channel))
	}
	op, err := c.proc.dev.Start(o)
	switch {
	case err != nil:
		return p.orRelease(k.fail(err))
	case k.isSend():
		c.proc.freedOps.add(op)
	default:
		p.channelRecv = op
	}
	return p, nil
}

// orRelease returns p if err is nil. Otherwise it releases p and returns err.
func (p *Partitioned) orRelease(err error) (*Partitioned, error) {
	if err != nil {
		p.call.releaseCopy()
		return nil, err
	}
	return p, nil
}

// Start starts the transfer of a message. The caller must have waited for the previous message's request.
func (p *Partitioned) Start() (Request, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := &p.call
	switch {
	case p.active:
		return Request{}, k.failf(ErrRequest, "the request is active: wait for it before starting it again")
	case k.comm.freed.Load():
		return Request{}, k.check()
	}
	clear(p.ready)
	p.notReady = len(p.ready)
	of := *k
	of.packedBuf = nil // p keeps it
	if k.peer == ProcNull {
		return of.newRequest(nil, true), nil
	}
	p.active, p.outcomeTaken, p.err = true, false, nil
	select {
	case <-p.wakeup:
	default:
	}
	if p.advance(); k.isSend() && p.notReady == 0 {
		p.post()
	}
	return of.newRequest(partitionedOp{p}, false), nil
}

// advance posts the receive once its channel is known.
func (p *Partitioned) advance() {
	if p.channelRecv != nil {
		_, done, err := p.channelRecv.Test()
		if !done {
			return
		}
		p.channelRecv = nil // not freed, because another caller may be waiting for it
		if p.channel = int(binary.LittleEndian.Uint32(p.channelBytes[:])); err != nil || p.channel <= 0 {
			p.channel = 0
		}
	}
	switch {
	case !p.active || p.op != nil || p.err != nil || p.call.isSend():
	case p.channel == 0:
		p.fail(errNoChannel)
	default:
		p.post()
	}
}

// post starts the transfer of the message.
func (p *Partitioned) post() {
	k := &p.call
	if s := k.packedBuf; s != nil && k.isSend() {
		s.pack()
	}
	op, err := k.comm.proc.dev.Start(mpe.Operation{
		Kind: k.kind, Peer: int(k.comm.members[k.peer].worldRank), Tag: p.channel, Comm: k.comm.number | channelDataOffset,
		Buf:      k.bytes,
		Datatype: k.datatype, AnyDatatype: k.anyDatatype,
	})
	if err != nil {
		p.fail(err)
		return
	}
	p.op = op
	p.wake()
	if p.notify != nil {
		op.Notify(p.notify)
	}
}

// fail ends a message that was never posted, with error err, and wakes its waiters.
func (p *Partitioned) fail(err error) {
	p.err = err
	p.wake()
	trySignal(p.notify)
}

func (p *Partitioned) wake() { trySignal(p.wakeup) }

func trySignal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default: // c already holds a value, or is nil
	}
}

// Pready marks the partitions from low to high of a started send as ready.
func (p *Partitioned) Pready(low, high int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.call
	k.op = "Pready"
	switch {
	case !k.isSend():
		return k.failf(ErrRequest, "the request is a receive: only partitions of a send can be marked ready")
	case low < 0 || high >= len(p.ready) || low > high:
		return k.failf(ErrArg, "partitions %d to %d: there are 0 to %d", low, high, len(p.ready)-1)
	case k.peer == ProcNull:
		return nil
	case !p.active || p.err != nil:
		return k.failf(ErrRequest, "the request is not active: start it first")
	}
	for i := low; i <= high; i++ {
		if p.ready[i] {
			return k.failf(ErrArg, "partition %d is ready already", i)
		}
	}
	for i := low; i <= high; i++ {
		p.ready[i] = true
	}
	if p.notReady -= high - low + 1; p.notReady == 0 {
		p.post()
	}
	return nil
}

// Parrived reports whether a partition of a receive is complete. It refers to the most recently started message, even
// after the caller has waited for that message.
func (p *Partitioned) Parrived(partition int) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.call
	k.op = "Parrived"
	switch {
	case k.isSend():
		return false, k.failf(ErrRequest, "the request is a send: only partitions of a receive arrive")
	case partition < 0 || partition >= len(p.ready):
		return false, k.failf(ErrArg, "there is no partition %d: there are 0 to %d", partition, len(p.ready)-1)
	case !p.active:
		return true, nil
	}
	_, done, _ := p.test() // the request will report the error
	return done, nil
}

// Free releases an inactive request.
func (p *Partitioned) Free() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active {
		return p.call.failf(ErrRequest, "the request is active: wait for it before it is freed")
	}
	if p.channelRecv != nil { // no later receive can match its send
		p.call.comm.proc.freedOps.add(p.channelRecv)
		p.channelRecv = nil
	}
	p.call.releaseCopy()
	return nil
}

func (p *Partitioned) test() (mpe.Status, bool, error) {
	p.advance()
	switch {
	case p.err != nil:
		return mpe.Status{}, true, p.err
	case p.op == nil:
		return mpe.Status{}, false, nil
	}
	st, done, err := p.op.Test()
	if done {
		p.unpackMessage(&st, err)
	}
	return st, done, err
}

// unpackMessage unpacks a received message.
func (p *Partitioned) unpackMessage(st *mpe.Status, err error) {
	st.Tag = p.call.tag
	if !p.outcomeTaken && err == nil && !p.call.isSend() {
		p.call.unpack(st.Bytes)
	}
	p.outcomeTaken = true
}

// partitionedOp implements mpe.Op for the current message.
type partitionedOp struct{ *Partitioned }

// Await implements mpe.Op.
func (p partitionedOp) Await(ctx context.Context) (*mpe.Status, error) {
	for {
		p.mu.Lock()
		p.advance()
		op, named, err := p.op, p.channelRecv, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return &noStatus, err
		case op != nil:
			st, err := op.Await(ctx)
			p.mu.Lock()
			p.unpackMessage(st, err)
			p.mu.Unlock()
			return st, err
		case named != nil:
			_, err = named.Await(ctx)
		default:
			err = p.call.comm.proc.dev.Await(ctx, p.wakeup)
		}
		if err == nil {
			continue
		}
		p.mu.Lock()
		if p.op == nil && p.err == nil {
			p.fail(err)
		}
		p.mu.Unlock()
	}
}

// Test implements mpe.Op.
func (p partitionedOp) Test() (mpe.Status, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.test()
}

// Result implements mpe.Op.
func (p partitionedOp) Result() (*mpe.Status, error) { return nil, nil }

// LibraryData implements mpe.Op.
func (p partitionedOp) LibraryData() *any { return nil }

// Cancel implements mpe.Op.
func (p partitionedOp) Cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.op != nil:
		p.op.Cancel()
	case p.err == nil:
		p.fail(mpe.ErrCancelled)
	}
}

// Notify implements mpe.Op.
func (p partitionedOp) Notify(c chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = c
	switch {
	case p.op != nil:
		p.op.Notify(c)
	case p.err != nil:
		trySignal(c)
	case p.channelRecv != nil:
		p.channelRecv.Notify(c)
	}
}

// Free implements mpe.Op.
func (p partitionedOp) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op != nil {
		p.op.Free()
	}
	p.op, p.notify, p.active = nil, nil, false
}
