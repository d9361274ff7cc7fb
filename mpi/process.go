package mpi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// process is what all communicators of a rank share.
type process struct {
	dev mpe.Device
	// peers is what the device knows of every rank of the world.
	peers []mpe.PeerInfo
	// noTags: there are peers whose wire carries no tags.
	noTags bool
	// deployed: there are peers that may get into dead ends.
	deployed bool
	numbers  numbers
	// buffer is the rank's send buffer, and buffers are those that are attached.
	buffer  *SendBuffer
	buffers sendBuffers
	freed   released
	// completed are the requests of sends that ended at once.
	completed completed
	// resting are those of sends that wait for receives, when there are many.
	resting resting
	over    atomic.Bool

	selfOnce sync.Once
	self     *Comm

	// cores, copies, collectives, scattered and rounds are memory to be used again: *core of
	// requests, *[]byte of SendrecvReplace, *collectiveCall, *scattered and *round.
	cores, copies, collectives, scattered, rounds sync.Pool
}

// New returns a device's world communicator: all ranks of the cluster, numbered
// as there. It asks the device once what each peer's wire can carry.
//
// Several worlds may live in one program, one per device.
//
// Numbers travel least significant byte first, and buffers are sent as they
// are, so New refuses to work on a machine with the other byte order.
func New(dev mpe.Device) (*Comm, error) {
	const op = "New"
	if !littleEndian() {
		return nil, errorf(ErrOther, op, "this machine's numbers are most significant byte first, and those of the wire least significant byte first; this package does not swap them")
	}
	if dev == nil {
		return nil, errorf(ErrArg, op, "the device is nil")
	}
	size, rank := dev.Size(), dev.Rank()
	if rank < 0 || rank >= size {
		return nil, errorf(ErrIntern, op, "the device says that it is rank %d of %d", rank, size)
	}
	p := &process{dev: dev, peers: make([]mpe.PeerInfo, size), numbers: numbers{last: selfNumber}}
	p.resting.sends, p.resting.core.resting = dev.Resting(), &p.resting
	g := &Group{ranks: make([]int, size), self: rank}
	for r := range p.peers {
		info, err := dev.Peer(r)
		if err != nil {
			return nil, errorf(ErrIntern, op, "the device does not know rank %d of its %d: %w", r, size, err)
		}
		p.peers[r], g.ranks[r] = info, r
		p.noTags = p.noTags || info.NoTags
		p.deployed = p.deployed || info.NoComms
	}
	world := p.comm(0, g, "world")
	p.buffer = world.NewSendBuffer()
	return world, nil
}

// Finalize ends the rank's part in the cluster: it deletes the attributes of Self, waits for the buffered sends
// and then closes the device. c is any communicator of the rank. No call may be
// under way in another goroutine, and the requests that have not ended end with
// an error.
//
// By the standard, every rank should have received what was sent to it
// before it calls Finalize.
func (c *Comm) Finalize(ctx context.Context) error {
	k := c.callf("Finalize")
	if c == nil {
		return k.failf(ErrComm, "the communicator is nil")
	}
	if c.p.over.Swap(true) {
		return k.failf(ErrOther, "it has been called already")
	}
	var err error
	if self := c.p.self; self != nil {
		err = k.attribute(self.attributes.Clear(self))
	}
	for _, b := range c.p.buffers.list {
		err = errors.Join(err, b.end(ctx, k))
	}
	if closeErr := c.p.dev.Close(ctx); closeErr != nil {
		err = errors.Join(err, k.fail(closeErr))
	}
	c.p.freed.sweep()
	return err
}

// Finalized reports whether Finalize has been called for the rank (MPI_Finalized).
func (c *Comm) Finalized() bool { return c.p.over.Load() }
