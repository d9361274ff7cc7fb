package tcp

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// failed records why there is no connection to p. An exhausted limit of this process is reported if it lasts,
// again and again for as long as it lasts: a peer of the extended profile is unreachable then.
func (c *Conn) failed(p *peer, err error) {
	err = rlimit.Descriptor(err)
	if !p.failed(err) || p.profile != protocol.Extended {
		return
	}
	reason := fmt.Sprintf("no connection to rank %d: %v", p.rank, err)
	c.queue.pushOnce(event{kind: mpe.RxUnreachable, peer: p, from: p.addr, reason: reason})
	if c.inbox != nil {
		c.inbox.notifyPoll()
	}
}

// acceptTimeout is the time for which refuseCaller waits for a peer: without descriptors, accept fails even if
// no peer is there.
const acceptTimeout = 100 * time.Millisecond

// refuseCaller resets the next incoming connection, if accept failed because the process has no descriptor
// left.
func (c *Conn) refuseCaller(err error) {
	if !rlimit.Is(err) {
		return
	}
	c.reserve.Spend(func() {
		if c.ln.SetDeadline(time.Now().Add(acceptTimeout)) != nil {
			return
		}
		conn, acceptErr := c.ln.AcceptTCP()
		_ = c.ln.SetDeadline(time.Time{}) // it worked before
		if acceptErr != nil {
			return
		}
		p := c.dialerAt(remoteAddr(conn).Addr())
		_ = conn.SetLinger(0)
		conn.Close()
		if p != nil {
			c.failed(p, err)
		}
	})
}
