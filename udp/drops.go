package udp

import "sync"

// dropSum extends a drop count that wraps around to 64 bits. It has to be updated now and then.
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

// Drops returns the number of datagrams that the system dropped since Listen because the socket's receive buffer was
// full. It returns false if the system does not report that, or the socket is closed. It may be called at any time, and
// costs a system call.
func (c *Conn) Drops() (uint64, bool) {
	n, err := c.sock.drops()
	if err != nil {
		return 0, false
	}
	return c.dropped.add(n), true
}
