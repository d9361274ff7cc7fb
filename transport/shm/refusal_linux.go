package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// A process that has reached a limit cannot make a link. Without a report of the limit, the peer would keep waiting and
// blame the process. The rank therefore reports its limit to the peer (refuseLink), and both ranks report each other as
// unreachable, with the limit as the reason. Both keep trying to make the link.

// peerLimitError reports a limit of the peer's process.
type peerLimitError struct {
	rank  int
	limit *rlimit.Error
}

// Error names the limit and its rank.
func (e *peerLimitError) Error() string { return fmt.Sprintf("at rank %d %v", e.rank, e.limit) }

// Unwrap returns the limit.
func (e *peerLimitError) Unwrap() error { return e.limit }

// refusalError returns the limit that h reports, or nil if h is not a refusal.
func (h *hello) refusalError() error {
	if h.purpose != refuseLink || !rlimit.Resource(h.ring).IsKnown() {
		return nil
	}
	return &peerLimitError{h.src, &rlimit.Error{Resource: rlimit.Resource(h.ring), Limit: h.memory.addr}}
}

// localLimit returns the limit of this process that caused err, or nil if err has another cause.
func localLimit(err error) *rlimit.Error {
	if _, remote := errors.AsType[*peerLimitError](err); remote {
		return nil
	}
	limit, _ := errors.AsType[*rlimit.Error](rlimit.Descriptor(err))
	return limit
}

// sendRefusal reports to p, over conn, that this process has reached a limit. It is a no-op if a limit did not cause
// err.
func (c *Conn) sendRefusal(p *peer, conn *net.UnixConn, err error) {
	if limit := localLimit(err); limit != nil {
		// This fails if p is gone.
		_ = sendHello(conn, hello{purpose: refuseLink, src: c.cfg.Rank, dst: p.rank, ring: int(limit.Resource),
			memory: memoryID{addr: limit.Limit}})
	}
}

// recordFailure records why there is no link to p. If a limit of either process has been the cause for some time,
// recordFailure also reports p as unreachable.
func (c *Conn) recordFailure(p *peer, err error) {
	if err = rlimit.Descriptor(err); !p.recordFailure(err) {
		return
	}
	c.reportEvent(p, mpe.RxPacket{Kind: mpe.RxUnreachable, Peer: p.rank, SourceAddr: p.addr, Bytes: []byte(err.Error())})
}

// acceptTimeout is the maximum time that refuseCaller waits for a caller, which may have hung up since the failed
// accept.
const acceptTimeout = 100 * time.Millisecond

// refuseCaller reports to the next caller that this process has no descriptor for it.
func (c *Conn) refuseCaller(err error) {
	c.reserve.Spend(func() {
		if c.ln.SetDeadline(time.Now().Add(acceptTimeout)) != nil {
			return
		}
		conn, acceptErr := c.ln.AcceptUnix()
		_ = c.ln.SetDeadline(time.Time{}) // cannot fail: the previous call succeeded
		if acceptErr != nil {
			return
		}
		defer conn.Close()
		defer context.AfterFunc(c.ctx, func() { conn.Close() })()
		h, helloErr := receiveHello(conn)
		closeHandles(h.handles)
		if helloErr != nil && localLimit(helloErr) == nil {
			return
		}
		if p, peerErr := c.peer(h.src); peerErr == nil && h.dst == c.cfg.Rank {
			c.sendRefusal(p, conn, err)
			c.recordFailure(p, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err))
		}
	})
}

// refuseOutgoing reports to p that this rank cannot call it. It is a no-op if a limit did not cause err.
func (c *Conn) refuseOutgoing(p *peer, err error) {
	if localLimit(err) == nil {
		return
	}
	c.reserve.Spend(func() {
		conn, openErr := c.connectTo(p)
		if openErr == nil {
			c.sendRefusal(p, conn, err)
			conn.Close()
		}
	})
}
