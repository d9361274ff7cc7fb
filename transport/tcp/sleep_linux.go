package tcp

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// Wakeup returns the descriptor of the epoll instance that watches all connections.
func (c *Conn) Wakeup() int { return c.inbox.epfd }

// Sleep reports whether a caller may wait on Wakeup's descriptor. It returns false if Poll has packets that the
// descriptor does not report.
func (c *Conn) Sleep() bool {
	in := c.inbox
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.backlogged == nil && !in.linksChanged.Load()
}

// recv implements Recv.
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
			return 0, fmt.Errorf("tcp: rank %d at %v cannot wait: %w", in.c.cfg.Rank, in.c.localAddr, err)
		}
	}
}

// wait waits until the epoll instance is readable.
func (in *inbox) wait() error {
	in.waitMu.Lock()
	defer in.waitMu.Unlock()
	if in.closed.Load() {
		return nil // the epoll instance may be closed
	}
	_, err := unix.Poll([]unix.PollFd{{Fd: int32(in.epfd), Events: unix.POLLIN}}, -1)
	if errors.Is(err, unix.EINTR) {
		return nil
	}
	return err
}
