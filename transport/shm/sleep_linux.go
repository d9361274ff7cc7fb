package shm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Wakeup returns the descriptor of the bell, or -1 when Poll has returned
// mpe.ErrTransportClosed.
func (c *Conn) Wakeup() int {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	if c.inbox.freed {
		return -1
	}
	return c.inbox.doorbell.bell
}

// Sleep has the next packet that arrives ring the bell, also if there are calls of
// Poll before it arrives. The bell stays readable until Sleep is called again. Sleep
// reports false if there is something to be had from Poll.
func (c *Conn) Sleep() bool {
	in := c.inbox
	if c.linksChanged.Load() || in.linksPending {
		return false
	}
	in.all = true // a poll of them follows, now or when the bell has rung
	asleep := in.doorbell.asleep()
	if in.asleep { // it may be rung, also while the flag is set: a peer clears that first, and may be interrupted then
		in.doorbell.reset()
	}
	// Either a peer sees that we sleep, or we see what it has written.
	asleep.Store(1)
	in.asleep = true
	if !c.linksChanged.Load() && !in.ready() && !c.anyPublished() {
		return true
	}
	if asleep.CompareAndSwap(1, 0) {
		in.asleep = false
	}
	return false
}

// ready reports whether there is something to be read.
func (in *inbox) ready() bool {
	for _, l := range in.links {
		if l.ready() {
			return true
		}
	}
	return false
}

// Recv waits for packets. Each is an mpe.RxDatagram, whose bytes are in the
// shared memory; a new link is an mpe.RxConnected, and one that ended
// because it was corrupt an mpe.RxBroken.
func (c *Conn) Recv(batch []mpe.RxPacket) (int, error) {
	if len(batch) == 0 {
		return 0, fmt.Errorf("shm: rank %d: Recv into an empty batch", c.cfg.Rank)
	}
	for {
		n, err := c.Poll(batch, nil)
		if n > 0 || err != nil {
			return n, err
		}
		if !c.Sleep() {
			continue
		}
		bell := []unix.PollFd{{Fd: int32(c.inbox.doorbell.bell), Events: unix.POLLIN}}
		if _, err := unix.Poll(bell, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("shm: rank %d at %v cannot wait: %w", c.cfg.Rank, c.local, err)
		}
	}
}
