package tcp

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// recvBatch limits the events that one Recv returns.
const recvBatch = 64

// Recv waits for packets. Headers and payload are returned as mpe.RxHeader and mpe.RxPayload, packets of the
// extended profile whole as mpe.RxDatagram. A new connection is an mpe.RxConnected. An invalid stream, a
// connection that TLS rejected, or one from an unknown address is an mpe.RxBroken.
func (c *Conn) Recv(batch []mpe.RxPacket) (int, error) {
	if len(batch) == 0 {
		return 0, fmt.Errorf("tcp: rank %d: Recv into an empty batch", c.cfg.Rank)
	}
	if c.inbox != nil {
		return c.inbox.recv(batch)
	}
	c.release()
	for {
		if c.ctx.Err() != nil {
			return 0, mpe.ErrTransportClosed
		}
		n := c.queue.pop(c.taken[:min(len(batch), recvBatch)])
		for i, ev := range c.taken[:n] {
			batch[i] = mpe.RxPacket{Kind: ev.kind, Peer: ev.peer.rank, From: ev.from, Bytes: ev.bytes(),
				Checked: ev.kind == mpe.RxDatagram}
		}
		if n > 0 {
			return n, nil
		}
		select {
		case <-c.queue.ready:
		case <-c.ctx.Done():
		}
	}
}

// release returns the chunks of the last Recv to their peers.
func (c *Conn) release() {
	for i, ev := range c.taken {
		if ev.chunk != nil {
			// The chunk is no peer's tail any more, so no other goroutine changes the count.
			if ev.chunk.events--; ev.chunk.events == 0 {
				ev.peer.free <- ev.chunk // has space for all chunks
			}
		}
		c.taken[i] = event{}
	}
}
