package tcp

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// recvBatch is the maximum number of events that one call of Recv returns.
const recvBatch = 64

// Recv waits for packets. It returns headers and payload as mpe.RxHeader and mpe.RxPayload, and a whole packet
// of the extended profile as mpe.RxDatagram. It reports a new connection as mpe.RxConnected. It reports an
// invalid stream, a connection that TLS rejected, and a connection from an unknown address as mpe.RxBroken.
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
		n := c.queue.pop(c.returnedEvents[:min(len(batch), recvBatch)])
		for i, ev := range c.returnedEvents[:n] {
			batch[i] = mpe.RxPacket{Kind: ev.kind, Peer: ev.peer.rank, SourceAddr: ev.from, Bytes: ev.bytes(),
				Verified: ev.kind == mpe.RxDatagram}
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

// release returns the chunks from the last call of Recv to their peers.
func (c *Conn) release() {
	for i, ev := range c.returnedEvents {
		if ev.chunk != nil {
			// The chunk is no longer the tail of a peer, so no other goroutine changes the count.
			if ev.chunk.events--; ev.chunk.events == 0 {
				ev.peer.freeChunks <- ev.chunk // has space for all chunks
			}
		}
		c.returnedEvents[i] = event{}
	}
}
