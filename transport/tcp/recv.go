package tcp

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// recvBatch is how many arrivals one Recv returns at most.
const recvBatch = 64

// Recv waits for packets. Headers and payload come as mpe.RxHeader and
// mpe.RxPayload, packets of the extended profile whole as
// mpe.RxDatagram; a new connection as mpe.RxConnected; a stream that is
// invalid, a connection that TLS refused, or one from an address that is not a
// peer's, as mpe.RxBroken.
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

// release gives the chunks of the last Recv back to their peers.
func (c *Conn) release() {
	for i, ev := range c.taken {
		if ev.chunk != nil {
			// It is no peer's tail any more, so no other goroutine counts.
			if ev.chunk.events--; ev.chunk.events == 0 {
				ev.peer.free <- ev.chunk // has room for every chunk there is
			}
		}
		c.taken[i] = event{}
	}
}
