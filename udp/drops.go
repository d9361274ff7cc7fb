package udp

import "sync"

// dropSum is such a count that does not wrap around, if it is examined now and then.
type dropSum struct {
	mu   sync.Mutex
	last uint32
	sum  uint64
}

func (d *dropSum) add(now uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum += uint64(now - d.last)
	d.last = now
	return d.sum
}

// Drops returns how many datagrams the system has dropped since Listen because the
// socket's receive buffer was full; false if it does not report that, or the socket is
// closed. It may be called at any time, and costs a system call.
func (c *Conn) Drops() (uint64, bool) {
	n, err := c.sock.drops()
	if err != nil {
		return 0, false
	}
	return c.dropped.add(n), true
}
