package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Wakeup returns the descriptor of the epoll instance in which all connections are.
func (c *Conn) Wakeup() int { return c.inbox.epfd }

// Sleep reports false if there is something to be had from Poll that Wakeup's
// descriptor does not report. It is readable as long as there is anything else.
func (c *Conn) Sleep() bool {
	in := c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.held == nil && !in.linksChanged.Load()
}

// recv is Recv.
func (in *inbox) recv(batch []mpe.RxPacket) (int, error) {
	for {
		n, err := in.c.Poll(batch, nil)
		if n > 0 || err != nil {
			return n, err
		}
		if !in.c.Sleep() {
			continue
		}
		if err := in.wait(); err != nil {
			return 0, fmt.Errorf("tcp: rank %d at %v cannot wait: %w", in.c.cfg.Rank, in.c.local, err)
		}
	}
}

// wait waits until the epoll instance is readable.
func (in *inbox) wait() error {
	in.waiting.Lock()
	defer in.waiting.Unlock()
	if in.closed.Load() {
		return nil // and it may be gone
	}
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(in.epfd), Events: unix.POLLIN}}, -1)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}
