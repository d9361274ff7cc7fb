package tcp

import (
	"net"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// outbox is the packets of the extended profile that wait to be written to one
// connection. It never waits for the network: what does not fit is not taken.
type outbox struct {
	mu sync.Mutex
	blocks
	// wake has an element if there may be something to write.
	wake chan struct{}
	// last says that nothing follows what waits.
	last bool

	// writing are the blocks that are being written, and buffers what is left
	// of them. Both are the writer's.
	writing [writeBlocks][]byte
	parts   [writeBlocks][]byte
	buffers net.Buffers
}

func newOutbox(limit int) *outbox {
	return &outbox{blocks: blocks{limit: limit}, wake: make(chan struct{}, 1)}
}

// add takes the first packets, as many as there is room for, and returns how many.
func (o *outbox) add(packets []mpe.Packet) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last {
		return 0
	}
	taken := o.queue(packets)
	o.notify()
	return taken
}

// take moves the first blocks to writing, and returns how many; 0 if nothing
// waits.
func (o *outbox) take() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := copy(o.writing[:], o.list)
	o.remove(n)
	return n
}

// done makes room for as much as the first n blocks of writing held.
func (o *outbox) done(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, block := range o.writing[:n] {
		o.waiting -= len(block)
		o.recycle(block)
		o.writing[i] = nil
	}
}

// end has the writer shut the sending side down after what waits.
func (o *outbox) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.last = true
	o.notify()
}

// notify has the writer examine the outbox.
func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// ended reports whether everything was written that ever will be.
func (o *outbox) ended() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.last && o.waiting == 0
}

// writeAll writes what is put into the outbox, until l is closed.
func (c *Conn) writeAll(l *link) {
	for {
		n := l.out.take()
		if n == 0 {
			if l.out.ended() {
				l.closeWrite()
				return
			}
			select {
			case <-l.out.wake:
				continue
			case <-l.closing:
				return
			}
		}
		if err := c.writeBlocks(l, n); err != nil {
			// The peer may have a part of a packet: nothing more can follow.
			l.close(err)
			return
		}
		l.out.done(n)
	}
}

func (c *Conn) writeBlocks(l *link, n int) error {
	o := l.out
	// WriteTo consumes the slice of slices that it is given.
	o.buffers = o.parts[:copy(o.parts[:n], o.writing[:n])]
	if err := l.stream.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := o.buffers.WriteTo(l.stream)
	return err
}
