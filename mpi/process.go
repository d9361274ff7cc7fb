package mpi

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// process is the state that all communicators of a rank share.
type process struct {
	dev mpe.Device
	// peers holds the device's information about every rank of the world.
	peers []mpe.PeerInfo
	// noTags is set if the wire of any peer does not support tags.
	noTags bool
	// hasDeployed is set if any peer may be unable to continue (a dead end).
	hasDeployed bool
	numbers     numbers
	// sendBuffer is the rank's send buffer. attachedBuffers lists all attached send buffers.
	sendBuffer      *SendBuffer
	attachedBuffers sendBuffers
	freedOps        freedOps
	// completed holds the requests of sends that completed before their call returned.
	completed completed
	// resting holds the requests of sends that have been handed over to the device while many sends wait for receives.
	resting   restingRequests
	finalized atomic.Bool

	selfOnce sync.Once
	self     *Comm

	// These pools hold, in this order, *core for requests, *[]byte for SendrecvReplace, *collectiveCall, *packedBuffer
	// and *round.
	cores, copies, collectives, packedBuffers, rounds sync.Pool
}

// New returns the world communicator of a device. It contains all ranks of the cluster, with the same numbers.
// New asks the device once for the limits of each peer's wire.
//
// A program may have several worlds, one per device.
//
// Numbers are little-endian on the wire, and buffers are sent unchanged, so New fails on a big-endian machine.
func New(dev mpe.Device) (*Comm, error) {
	const op = "New"
	if !littleEndian() {
		return nil, errorf(ErrOther, op, "this machine is big-endian, but numbers on the "+
			"wire are little-endian; this package does not convert them")
	}
	if dev == nil {
		return nil, errorf(ErrArg, op, "the device is nil")
	}
	size, rank := dev.Size(), dev.Rank()
	if rank < 0 || rank >= size {
		return nil, errorf(ErrIntern, op, "the device reports that it is rank %d of %d", rank, size)
	}
	p := &process{dev: dev, peers: make([]mpe.PeerInfo, size), numbers: numbers{highest: selfNumber}}
	p.resting.sends, p.resting.core.resting = dev.Resting(), &p.resting
	group := &Group{ranks: make([]int, size), self: rank}
	for r := range p.peers {
		info, err := dev.Peer(r)
		if err != nil {
			return nil, errorf(ErrIntern, op, "the device does not know rank %d of its %d: %w", r, size, err)
		}
		p.peers[r], group.ranks[r] = info, r
		p.noTags = p.noTags || info.NoTags
		p.hasDeployed = p.hasDeployed || info.NoComms
	}
	world := p.newIntracomm(0, group, "world")
	p.sendBuffer = world.NewSendBuffer()
	return world, nil
}

// Finalize ends the rank's participation in the cluster. It deletes the attributes of Self, waits for buffered sends
// and closes the device. c may be any communicator of the rank. No other goroutine may have a call in progress. Pending
// requests fail.
//
// According to the standard, every rank should have received all messages sent to it before it calls Finalize.
func (c *Comm) Finalize(ctx context.Context) error {
	k := c.newCall("Finalize")
	if c == nil {
		return k.failf(ErrComm, "the communicator is nil")
	}
	if c.proc.finalized.Swap(true) {
		return k.failf(ErrOther, "it has been called already")
	}
	var err error
	if self := c.proc.self; self != nil {
		err = k.attributeError(self.attributes.Clear(self))
	}
	for _, b := range c.proc.attachedBuffers.list {
		err = errors.Join(err, b.awaitSends(ctx, k))
	}
	if closeErr := c.proc.dev.Close(ctx); closeErr != nil {
		err = errors.Join(err, k.fail(closeErr))
	}
	c.proc.freedOps.freeDone()
	return err
}

// Finalized reports whether Finalize has been called for the rank (MPI_Finalized).
func (c *Comm) Finalized() bool { return c.proc.finalized.Load() }
