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

// isRefused reports whether the host of a peer has answered that no process listens there.
func isRefused(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }

// reportGone has Recv and Poll report that no process is p any more, which packets of the
// extended profile alone have a rule for, unless there is a connection to the next one.
func (c *Conn) reportGone(p *peer) {
	if p.profile != protocol.Extended {
		return
	}
	p.mu.Lock()
	if p.link == nil { // so that a later connection is reported behind it
		c.queue.push(event{kind: mpe.RxGone, peer: p, from: p.addr})
	}
	p.mu.Unlock()
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
}

// goneAfter is how long a lower rank has to dial again before it is tried whether it is there.
// It does so within 100 ms if only the connection was lost (C5).
const goneAfter = 250 * time.Millisecond

// afterConnection determines whether p, a lower rank whose connection has ended, is there. It
// reports p once.
func (c *Conn) afterConnection(p *peer) {
	if p.profile != protocol.Extended {
		return
	}
	select {
	case <-time.After(goneAfter):
	case <-c.dialing.Done():
		return
	}
	if l, _ := p.current(); l != nil {
		return
	}
	ctx, cancel := context.WithTimeout(c.dialing, dialTimeout)
	defer cancel()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: c.local.Addr().AsSlice(), Zone: c.local.Addr().Zone()}}
	addr, _ := p.at()
	conn, err := dialer.DialContext(ctx, network(addr), addr.String())
	if err == nil { // it is there, and reports a connection that it does not expect
		conn.Close()
	} else if isRefused(err) {
		c.reportGone(p)
	}
}
