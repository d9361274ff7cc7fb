package tcp

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// recordFailure records why there is no connection to p. If a limit of this process is the cause and persists, each
// call also reports p as unreachable, provided that p uses the extended profile.
func (c *Conn) recordFailure(p *peer, err error) {
	err = rlimit.Descriptor(err)
	if !p.recordFailure(err) || p.profile != protocol.Extended {
		return
	}
	reason := fmt.Sprintf("no connection to rank %d: %v", p.rank, err)
	c.queue.pushOnce(event{kind: mpe.RxUnreachable, peer: p, from: p.addr, reason: reason})
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
}

// acceptTimeout is the maximum time for which refuseCaller waits for a connection. Possibly no peer is dialing: without
// free descriptors, accept fails even then.
const acceptTimeout = 100 * time.Millisecond

// refuseCaller resets the next incoming connection if accept has failed with err because the process has run out of
// descriptors.
func (c *Conn) refuseCaller(err error) {
	if !rlimit.Is(err) {
		return
	}
	c.reserve.Spend(func() {
		if c.ln.SetDeadline(time.Now().Add(acceptTimeout)) != nil {
			return
		}
		conn, acceptErr := c.ln.AcceptTCP()
		_ = c.ln.SetDeadline(time.Time{}) // cannot fail: the previous call succeeded
		if acceptErr != nil {
			return
		}
		p := c.peerAtIP(remoteAddr(conn).Addr())
		_ = conn.SetLinger(0)
		conn.Close()
		if p != nil {
			c.recordFailure(p, err)
		}
	})
}
