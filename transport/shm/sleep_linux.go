package shm

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Wakeup returns the descriptor of the bell. It returns -1 once Poll has returned mpe.ErrTransportClosed.
func (c *Conn) Wakeup() int {
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	if c.inbox.freed {
		return -1
	}
	return c.inbox.doorbell.eventFD
}

// Sleep makes the next packet to arrive ring the bell, even if Poll is called in the meantime. The bell stays readable
// until the next call of Sleep. Sleep returns false if Poll would find something.
func (c *Conn) Sleep() bool {
	in := c.inbox
	if c.linksChanged.Load() || in.linksPending {
		return false
	}
	in.pollAll = true // the next Poll reads all links, now or after the bell has rung
	asleep := in.doorbell.asleepFlag()
	// The bell may be rung even while the flag is set: a peer clears the flag before it rings, and may be
	// interrupted in between.
	if in.asleep {
		in.doorbell.reset()
	}
	// Either the peer sees that we are asleep, or we see its packet.
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

// ready reports whether a link has a packet.
func (in *inbox) ready() bool {
	for _, l := range in.links {
		if l.ready() {
			return true
		}
	}
	return false
}

// Recv waits for packets. It returns each one as an mpe.RxDatagram, whose bytes are in the shared memory. It reports a
// new link as an mpe.RxConnected, and a link closed because of invalid data as an mpe.RxBroken.
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
		bell := []unix.PollFd{{Fd: int32(c.inbox.doorbell.eventFD), Events: unix.POLLIN}}
		if _, err := unix.Poll(bell, -1); err != nil && !errors.Is(err, unix.EINTR) {
			return 0, fmt.Errorf("shm: rank %d at %v cannot wait: %w", c.cfg.Rank, c.localAddr, err)
		}
	}
}
