package mpe

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/lease"
)

// Lessor is a Device that can lease its fast path to C code.
type Lessor interface {
	// Lease leases a Block after a call that the program has completed, if the device can. The device takes the Block back
	// before it does anything else.
	Lease(b *lease.Block, l *LeaseRequest) bool
	// Forget takes the Block back, and removes a communicator from it. It must be called before the handle or the
	// sequence becomes invalid. Handle 0 refers to no communicator.
	Forget(b *lease.Block, handle uint64)
}

// LeaseRequest describes a completed call. C code can make calls like it.
type LeaseRequest struct {
	// Handle is the communicator's handle in C. Sequence is the address of the number of its last collective call.
	Handle, Sequence uint64
	// Comm and CallComm are the communicator's numbers in messages and in collective calls. Rank is this rank's number
	// in the communicator, and Members lists the world ranks of the members.
	Comm, CallComm uint32
	Rank           int
	Members        []int
	// Peer is the world rank of the message's peer, or a negative number.
	Peer int
	// Shape holds the arguments of a collective call, or is nil.
	Shape *lease.Shape
}

// leasing is the state of an engine that leases a Block. The engine's lock guards it.
type leasing struct {
	// block is the Block that is, or was last, leased.
	block *lease.Block
	// isLeased is set while the Block is leased. It may be read without the lock.
	isLeased atomic.Bool
	// source is the index of the source that polls the peers that share memory, or −1.
	source int
	// peers holds the world ranks of the entries in Block.Peers. recent describes when they were last used.
	peers  [lease.MaxPeers]int
	recent [lease.MaxPeers]recentUse
	// comms describes the entries in Block.Comms. nextComm is the entry to replace next.
	comms    [lease.MaxComms]leasedComm
	nextComm int
	// clockStart is the time on the processor's clock, in nanoseconds, at which the engine's clock started.
	clockStart int64
}

// recentUse is the number of further leases that include an entry of the Block that none of them uses. A program that
// alternates between messages and collective calls needs a lease of both.
type recentUse uint8

// maxUnused is the initial value of a recentUse.
const maxUnused = 4

// update records whether a lease was used.
func (r *recentUse) update(used bool) {
	if used {
		*r = maxUnused
	} else if *r > 0 {
		*r--
	}
}

// leasedComm describes an entry in Block.Comms. shares describes when collective calls were last made.
type leasedComm struct {
	number uint32
	shares recentUse
}

// maxPollsLeased is the number of polls by C code, each of a few nanoseconds, before it leaves a wait to the engine,
// which shows the wait to tools and can sleep.
const maxPollsLeased = 1500

// engineLock is the lock of an engine. Lock takes a leased Block back.
type engineLock struct {
	sync.Mutex
	engine *Engine
}

func (m *engineLock) Lock() {
	m.Mutex.Lock()
	if m.engine.leasing.isLeased.Load() {
		revoke(m.engine)
	}
}

// Lease implements Lessor.
func (e *Engine) Lease(b *lease.Block, l *LeaseRequest) bool {
	at := e.leasing.source
	if at < 0 || !e.group.Acquire(at) { // otherwise a goroutine is polling
		return false
	}
	defer e.group.Release(at)
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.core.Leases.CanLease() || e.group.Waiting.Load() > 0 || len(l.Members) > lease.MaxRanks {
		return false
	}
	if e.leasing.block != b {
		e.leasing.block, b.Comms, b.Shapes = b, [lease.MaxComms]lease.Comm{}, [lease.MaxShapes]lease.Shape{}
	}
	c := e.leasing.addComm(b, l)
	if l.Peer >= 0 {
		e.leasing.addPeer(b, c, l)
	}
	if l.Shape != nil && e.core.Leases.DescribeShape(l.CallComm, l.Shape) {
		b.Shapes[l.Shape.Index()] = *l.Shape
		e.leasing.comms[c].shares = maxUnused
	}
	if !leaseAll(e, b) {
		return false
	}
	b.Events, b.PayloadLen, b.Polls = 0, 0, maxPollsLeased
	e.leasing.isLeased.Store(true)
	atomic.StoreUint32(&b.State, lease.Leased)
	return true
}

// addComm returns the index of the entry for a communicator, which it adds if necessary.
func (x *leasing) addComm(b *lease.Block, l *LeaseRequest) int {
	i := slices.IndexFunc(b.Comms[:], func(c lease.Comm) bool { return c.Handle == l.Handle })
	if i < 0 {
		i = x.nextComm
		x.nextComm = (i + 1) % len(b.Comms)
		b.Comms[i] = lease.Comm{Handle: l.Handle, Sequence: l.Sequence, Number: l.Comm, Rank: uint32(l.Rank),
			Ranks: uint32(len(l.Members))}
		x.comms[i] = leasedComm{number: l.CallComm}
		for r, rank := range l.Members {
			b.Comms[i].Peers[r] = uint8(slices.Index(x.peers[:], rank+1) + 1)
		}
	}
	return i
}

// addPeer adds the peer of a message to the Block, if it has space.
func (x *leasing) addPeer(b *lease.Block, comm int, l *LeaseRequest) {
	i := slices.Index(x.peers[:], l.Peer+1)
	if i < 0 {
		if i = slices.Index(x.peers[:], 0); i < 0 {
			return
		}
		x.peers[i] = l.Peer + 1
	}
	x.recent[i] = maxUnused
	if r := slices.Index(l.Members, l.Peer); r >= 0 {
		b.Comms[comm].Peers[r] = uint8(i + 1)
	}
}

// leaseAll leases everything that was used lately. It returns false if nothing can be leased.
func leaseAll(e *Engine, b *lease.Block) (any bool) {
	x := &e.leasing
	b.Stamps = flag(e.core.Leases.RecordsCalls())
	for i, recent := range x.recent {
		if recent > 0 && e.core.Leases.LeasePeer(x.peers[i]-1, &b.Peers[i]) {
			any = true
			b.Stamps |= b.Peers[i].Keeps
		}
	}
	for i := range b.Comms {
		c := &b.Comms[i]
		if c.Handle == 0 {
			continue
		}
		c.MayRecv = flag(e.core.Leases.MayRecv(c.Number))
		c.Shares = flag(x.comms[i].shares > 0 && e.core.Leases.LeaseCalls(x.comms[i].number, &c.Sharing))
		any = any || c.Shares != 0
	}
	return any
}

func flag(set bool) uint32 {
	if set {
		return 1
	}
	return 0
}

// Forget implements Lessor.
func (e *Engine) Forget(b *lease.Block, handle uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range b.Comms {
		if b.Comms[i].Handle == handle {
			b.Comms[i] = lease.Comm{}
			e.leasing.comms[i] = leasedComm{}
		}
	}
	for i := range b.Shapes {
		if b.Shapes[i].Comm == handle {
			b.Shapes[i] = lease.Shape{}
		}
	}
}

// endLease takes the Block back before the transport is polled. Only the owner of the source can lease a Block, so the
// Block is not leased again until the source has been polled.
func endLease(engine *Engine) {
	if engine.leasing.isLeased.Load() {
		engine.mu.Lock()
		engine.mu.Unlock() //nolint:staticcheck // Lock has done everything
	}
}

// revoke takes the Block back and replays what C code has done. The caller holds the lock.
func revoke(e *Engine) {
	x, b := &e.leasing, e.leasing.block
	for tries := 1; !atomic.CompareAndSwapUint32(&b.State, lease.Leased, lease.Kept); tries++ {
		atomic.StoreUint32(&b.Recall, 1) // C code stops waiting
		switch {
		case tries%1000 == 0: // the system has interrupted C code
			time.Sleep(20 * time.Microsecond)
		case tries%10 == 0:
			runtime.Gosched()
		}
	}
	atomic.StoreUint32(&b.Recall, 0)
	for i := range b.Peers {
		if p := &b.Peers[i]; p.IsLeased != 0 {
			e.core.Leases.ReturnPeer(x.peers[i]-1, p)
			p.IsLeased = 0
			x.recent[i].update(p.Used != 0)
		}
	}
	for i := range b.Comms {
		if c := &b.Comms[i]; c.Shares != 0 {
			e.core.Leases.ReturnCalls(x.comms[i].number, &c.Sharing)
			c.Shares = 0
			x.comms[i].shares.update(c.Sharing.Used != 0)
		}
	}
	if b.Events > 0 {
		replay(e, b)
	}
	x.isLeased.Store(false)
}

// replay is an event in which the core learns what C code has done.
func replay(e *Engine, b *lease.Block) {
	now := e.clock.now()
	e.core.Begin(now)
	for i := range b.Log[:b.Events] {
		event := &b.Log[i]
		at := now
		if b.Stamps != 0 {
			at = e.leasing.instant(event.Ended, now)
			e.core.Begin(at)
		}
		payload := b.Payload[event.Payload:][:event.Length]
		switch event.Kind {
		case lease.Sent:
			e.core.Leases.ReplaySent(e.leasing.peers[event.Peer]-1, event, payload)
		case lease.Received:
			e.core.Leases.ReplayReceived(e.leasing.peers[event.Peer]-1, event, payload)
		case lease.Called:
			e.core.Leases.ReplayCalled(e.leasing.comms[event.Peer].number, event, &b.Shapes[event.Shape],
				e.leasing.instant(event.Began, now), at)
		}
	}
	e.core.Begin(now)
	e.postCount += b.Events
	applyOutcome(e, e.core.End())
}

// instant converts a time on the processor's clock to the engine's clock.
func (x *leasing) instant(t uint64, now handshake.Instant) handshake.Instant {
	if t == 0 {
		return now
	}
	return min(handshake.Instant(int64(t)-x.clockStart), now)
}
