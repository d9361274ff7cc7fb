package tcp

import (
	"net"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// outbox queues packets of the extended profile to be written to one connection. It never waits for the network: it
// rejects packets that do not fit.
type outbox struct {
	mu sync.Mutex
	blocks
	// wake contains an element if the writer should check for data to write.
	wake chan struct{}
	// closed is set once the outbox accepts no more packets.
	closed bool

	// writing holds the blocks being written, and buffers holds the part of them not yet written. The writer
	// owns both.
	writing [writeBlocks][]byte
	parts   [writeBlocks][]byte
	buffers net.Buffers
}

func newOutbox(limit int) *outbox {
	return &outbox{blocks: blocks{limit: limit}, wake: make(chan struct{}, 1)}
}

// enqueue queues packets until the outbox is full, and returns the number of packets queued.
func (o *outbox) enqueue(packets []mpe.Packet) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return 0
	}
	taken := o.queue(packets)
	o.notify()
	return taken
}

// takeBlocks moves the first blocks of the queue to the field writing. It returns their number, which is 0 if the queue
// is empty.
func (o *outbox) takeBlocks() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	n := copy(o.writing[:], o.list)
	o.remove(n)
	return n
}

// releaseBlocks frees the first n blocks in the field writing.
func (o *outbox) releaseBlocks(n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, block := range o.writing[:n] {
		o.queuedBytes -= len(block)
		o.recycle(block)
		o.writing[i] = nil
	}
}

// finish makes the writer shut down the sending side once the queue is written.
func (o *outbox) finish() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	o.notify()
}

// notify wakes the writer.
func (o *outbox) notify() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

// isDrained reports whether the outbox is closed and all of its data is written.
func (o *outbox) isDrained() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.closed && o.queuedBytes == 0
}

// writeAll writes the outbox to the connection until l is closed.
func (c *Conn) writeAll(l *link) {
	for {
		n := l.out.takeBlocks()
		if n == 0 {
			if l.out.isDrained() {
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
			// The peer may have received a part of a packet, so no other packet can follow on this connection.
			l.close(err)
			return
		}
		l.out.releaseBlocks(n)
	}
}

// writeBlocks writes the n blocks that takeBlocks returned, under one deadline.
func (c *Conn) writeBlocks(l *link, n int) error {
	o := l.out
	// WriteTo consumes its receiver.
	o.buffers = o.parts[:copy(o.parts[:n], o.writing[:n])]
	if err := l.stream.SetWriteDeadline(time.Now().Add(c.cfg.WriteTimeout)); err != nil {
		return err
	}
	_, err := o.buffers.WriteTo(l.stream)
	return err
}
