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
// A send matches the receive with the same peer, communicator and tag, in the order of the calls of PsendInit
// and PrecvInit. Each send has its own channel, and sends the channel's number to its receive. No other message
// matches.
type Partitioned struct {
	mu   sync.Mutex
	call call
	// channel is the tag of the messages. It is 0 in a receive that does not know it yet; in that case, named
	// is the operation that receives it into name.
	channel int
	named   mpe.Op
	name    [channelLen]byte
	// ready marks the partitions of an active send that are ready. missing is the number of partitions that are
	// not.
	ready   []bool
	missing int
	active  bool
	// op is the operation of the message, once it has been posted. If posting failed, err is set instead. When
	// either is set, a value is sent to woken and to notify.
	op     mpe.Op
	err    error
	woken  chan struct{}
	notify chan<- struct{}
	over   bool // the outcome has been returned
}

// Offsets that are added to a communicator's number for the messages of partitioned communication. Messages
// with the first offset carry channel numbers, and have the program's tags. Messages with the second offset
// carry data, and have channel numbers as tags.
const (
	channelNames = 2
	channelData  = 3

	channelLen = 4
)

var errNoChannel = errors.New("the send that matches it is not known: a wait for it has ended early, or the " +
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

func (c *Comm) partitioned(k call, b *Buffer, partitions int) (*Partitioned, error) {
	switch {
	case k.peer == AnySource:
		return nil, k.failf(ErrRank, "a partitioned receive is from one rank")
	case k.tag == AnyTag:
		return nil, k.failf(ErrTag, "a partitioned receive has a tag")
	case partitions < 0:
		return nil, k.failf(ErrArg, "%d partitions", partitions)
	}
	p := &Partitioned{woken: make(chan struct{}, 1), ready: make([]bool, partitions)}
	if err := k.typed(b); err != nil {
		return nil, err
	}
	p.call = k
	var o mpe.Operation
	if err := p.call.operation(&o); err != nil || k.peer == ProcNull {
		return p.unless(err)
	}
	world := c.members[k.peer].world
	if c.p.peers[world].NoComms {
		return p.unless(k.failf(ErrComm,
			"the wire to rank %d carries no communicators, which partitioned communication needs", k.peer))
	}
	o = mpe.Operation{Kind: k.kind, Peer: int(world), Tag: k.tag, Comm: c.number | channelNames, Buf: p.name[:]}
	if k.sends() {
		p.channel = 1 + int((c.channels.Add(1)-1)%math.MaxInt32)
		binary.LittleEndian.PutUint32(p.name[:], uint32(p.channel))
	}
	op, err := c.p.dev.Start(o)
	switch {
	case err != nil:
		return p.unless(k.fail(err))
	case k.sends():
		c.p.freed.add(op)
	default:
		p.named = op
	}
	return p, nil
}

// unless returns p if err is nil; otherwise it releases p.
func (p *Partitioned) unless(err error) (*Partitioned, error) {
	if err != nil {
		p.call.giveBack()
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
	p.missing = len(p.ready)
	of := *k
	of.scattered = nil // p keeps it
	if k.peer == ProcNull {
		return of.request(nil, true), nil
	}
	p.active, p.over, p.err = true, false, nil
	select {
	case <-p.woken:
	default:
	}
	if p.advance(); k.sends() && p.missing == 0 {
		p.post()
	}
	return of.request(partitions{p}, false), nil
}

// advance posts the receive once its channel is known.
func (p *Partitioned) advance() {
	if p.named != nil {
		_, done, err := p.named.Test()
		if !done {
			return
		}
		p.named = nil // not freed, because another caller may be waiting for it
		if p.channel = int(binary.LittleEndian.Uint32(p.name[:])); err != nil || p.channel <= 0 {
			p.channel = 0
		}
	}
	switch {
	case !p.active || p.op != nil || p.err != nil || p.call.sends():
	case p.channel == 0:
		p.end(errNoChannel)
	default:
		p.post()
	}
}

// post starts the transfer of the message.
func (p *Partitioned) post() {
	k := &p.call
	if s := k.scattered; s != nil && k.sends() {
		s.pack()
	}
	op, err := k.comm.p.dev.Start(mpe.Operation{
		Kind: k.kind, Peer: int(k.comm.members[k.peer].world), Tag: p.channel, Comm: k.comm.number | channelData,
		Buf:      k.bytes,
		Datatype: k.datatype, AnyDatatype: k.any,
	})
	if err != nil {
		p.end(err)
		return
	}
	p.op = op
	p.wake()
	if p.notify != nil {
		op.Notify(p.notify)
	}
}

// end ends a message that was never posted.
func (p *Partitioned) end(err error) {
	p.err = err
	p.wake()
	notify(p.notify)
}

func (p *Partitioned) wake() { notify(p.woken) }

func notify(c chan<- struct{}) {
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
	case !k.sends():
		return k.failf(ErrRequest, "it is a receive, whose partitions are not the caller's to make ready")
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
	if p.missing -= high - low + 1; p.missing == 0 {
		p.post()
	}
	return nil
}

// Parrived reports whether a partition of a receive has arrived. It refers to the message started last, even
// after the caller has waited for its request.
func (p *Partitioned) Parrived(partition int) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	k := p.call
	k.op = "Parrived"
	switch {
	case k.sends():
		return false, k.failf(ErrRequest, "it is a send, whose partitions do not arrive")
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
	if p.named != nil { // no later receive can match its send
		p.call.comm.p.freed.add(p.named)
		p.named = nil
	}
	p.call.giveBack()
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
		p.arrived(&st, err)
	}
	return st, done, err
}

// arrived unpacks a received message.
func (p *Partitioned) arrived(st *mpe.Status, err error) {
	st.Tag = p.call.tag
	if !p.over && err == nil && !p.call.sends() {
		p.call.scatter(st.Bytes)
	}
	p.over = true
}

// partitions implements mpe.Op for the current message.
type partitions struct{ *Partitioned }

// Await implements mpe.Op.
func (p partitions) Await(ctx context.Context) (*mpe.Status, error) {
	for {
		p.mu.Lock()
		p.advance()
		op, named, err := p.op, p.named, p.err
		p.mu.Unlock()
		switch {
		case err != nil:
			return &noStatus, err
		case op != nil:
			st, err := op.Await(ctx)
			p.mu.Lock()
			p.arrived(st, err)
			p.mu.Unlock()
			return st, err
		case named != nil:
			_, err = named.Await(ctx)
		default:
			err = p.call.comm.p.dev.Await(ctx, p.woken)
		}
		if err == nil {
			continue
		}
		p.mu.Lock()
		if p.op == nil && p.err == nil {
			p.end(err)
		}
		p.mu.Unlock()
	}
}

// Test implements mpe.Op.
func (p partitions) Test() (mpe.Status, bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.test()
}

// Ended implements mpe.Op.
func (p partitions) Ended() (*mpe.Status, error) { return nil, nil }

// Library implements mpe.Op.
func (p partitions) Library() *any { return nil }

// Cancel implements mpe.Op.
func (p partitions) Cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.op != nil:
		p.op.Cancel()
	case p.err == nil:
		p.end(mpe.ErrCancelled)
	}
}

// Notify implements mpe.Op.
func (p partitions) Notify(c chan<- struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notify = c
	switch {
	case p.op != nil:
		p.op.Notify(c)
	case p.err != nil:
		notify(c)
	case p.named != nil:
		p.named.Notify(c)
	}
}

// Free implements mpe.Op.
func (p partitions) Free() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.op != nil {
		p.op.Free()
	}
	p.op, p.notify, p.active = nil, nil, false
}
