package udp

import "sync"

// dropSum extends a 32-bit drop count, which wraps around, to 64 bits. It is correct if fewer than 2³² datagrams are
// dropped between two calls of add.
type dropSum struct {
	mu   sync.Mutex
	last uint32
	sum  uint64
}

// add returns the total, given the current value of the 32-bit count.
func (d *dropSum) add(now uint32) uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.sum += uint64(now - d.last)
	d.last = now
	return d.sum
}

// Drops returns the number of datagrams that the system has dropped since Listen because the socket's receive buffer
// was full. It returns false if the system does not report this number, or if the socket is closed. It may be called at
// any time, and makes a system call.
func (c *Conn) Drops() (uint64, bool) {
	n, err := c.sock.drops()
	if err != nil {
		return 0, false
	}
	return c.dropTotal.add(n), true
}
