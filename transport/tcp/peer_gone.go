package tcp

import (
	"context"
	"errors"
	"net"
	"syscall"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// isRefused reports whether the peer's host answered that no process listens on the port.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// reportGone makes Recv and Poll report that the process of p is gone, unless p already has a new connection. Only the
// extended profile defines this report; for other peers reportGone is a no-op.
func (c *Conn) reportGone(p *peer) {
	if p.profile != protocol.Extended {
		return
	}
	p.mu.Lock()
	if p.link == nil { // under the lock, so that a later connection is reported after it
		c.queue.push(event{kind: mpe.RxPeerDied, peer: p, from: p.addr})
	}
	p.mu.Unlock()
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
}

// goneDelay is the time for which afterConnection waits for a lower rank to dial again before it probes the rank. A
// rank that only lost its connection dials again within 100 ms (C5).
const goneDelay = 250 * time.Millisecond

// afterConnection determines whether p, a lower rank whose connection was lost, is still running. If the process of p
// is gone, afterConnection reports that once.
func (c *Conn) afterConnection(p *peer) {
	if p.profile != protocol.Extended {
		return
	}
	select {
	case <-time.After(goneDelay):
	case <-c.dialCtx.Done():
		return
	}
	if l, _ := p.currentLink(); l != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.dialCtx, dialTimeout)
	defer cancel()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.localAddr.Addr().AsSlice(), Zone: c.localAddr.Addr().Zone()}}
	addr, _ := p.addrAndTLS()
	conn, err := dialer.DialContext(ctx, network(addr), addr.String())
	if err == nil { // it runs, and reports an unexpected connection
		conn.Close()
	} else if isRefused(err) {
		c.reportGone(p)
	}
}
