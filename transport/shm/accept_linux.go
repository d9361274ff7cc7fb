package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

const (
	// acceptPause is the pause after accept fails, usually because the process has no file descriptors left.
	acceptPause = 100 * time.Millisecond
	// maxCallers is the maximum number of callers with which hellos are exchanged at the same time.
	maxCallers = 256
)

// acceptAll answers calls until the Conn is closed.
func (c *Conn) acceptAll() {
	callers := make(chan struct{}, maxCallers)
	for {
		select {
		case callers <- struct{}{}:
		case <-c.ctx.Done():
			return
		}
		conn, err := c.ln.AcceptUnix()
		if err != nil {
			<-callers
			if err = rlimit.Descriptor(err); localLimit(err) != nil {
				c.refuseCaller(err)
			}
			select {
			case <-time.After(acceptPause):
				continue
			case <-c.ctx.Done():
				return
			}
		}
		c.tasks.Go(func() {
			defer conn.Close()
			k := &linkSetup{conn: conn}
			defer context.AfterFunc(c.ctx, k.closeConn)()
			l := c.handleRequest(k)
			<-callers
			if l != nil {
				c.serve(l)
				c.probeAfterLink(l.peer)
			}
		})
	}
}

// linkSetup is a connection over which two ranks set up a link.
type linkSetup struct {
	conn *net.UnixConn
	mu   sync.Mutex
	// linked is set once the peer has a link, or will have one when it reads the last hello.
	linked bool
}

// confirmLink sends the last hello. The peer uses its link once it has read this hello.
func (k *linkSetup) confirmLink(h hello) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	err := sendHello(k.conn, h)
	k.linked = err == nil
	return err
}

// closeConn closes the connection when the Conn is closed. If the peer has a link, closeConn first sends the closing
// message, because the peer would otherwise assume that this process exited.
func (k *linkSetup) closeConn() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.linked {
		_ = sendMessage(k.conn, closing, nil) // fails if the peer is gone
	}
	k.conn.Close()
}

// handleRequest handles a caller's request. It returns the new link if the caller requests one, and nil otherwise.
func (c *Conn) handleRequest(setup *linkSetup) *link {
	conn := setup.conn
	h, err := receiveHello(conn)
	if errors.Is(err, errVersion) {
		c.refuseVersion(conn, h, err)
	}
	limit := localLimit(err)
	if err != nil && limit == nil {
		return nil // no valid hello: the caller is unknown
	}
	defer closeHandles(h.handles)
	p, peerErr := c.peer(h.src)
	switch refusal := h.refusalError(); {
	case peerErr != nil || h.dst != c.cfg.Rank:
	case limit != nil:
		c.failLink(p, conn, limit)
	case refusal != nil:
		c.recordFailure(p, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, refusal))
	case h.purpose == requestCall && p.rank > c.cfg.Rank:
		select {
		case p.callRequested <- struct{}{}:
		default:
		}
	case h.purpose == requestLink && p.rank < c.cfg.Rank:
		l, err := c.acceptLink(p, setup, h)
		if err != nil {
			c.failLink(p, conn, err)
			return nil
		}
		return l
	}
	return nil
}

// failLink records why making a link to p over conn failed. If a limit of this process is the cause, failLink reports
// it to p.
func (c *Conn) failLink(p *peer, conn *net.UnixConn, err error) {
	c.sendRefusal(p, conn, err)
	c.recordFailure(p, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err))
}

// refuseVersion records that a peer runs another version. It answers with our own version, so that the peer can record
// the mismatch as well.
func (c *Conn) refuseVersion(conn *net.UnixConn, h hello, reason error) {
	if p, err := c.peer(h.src); err == nil && h.dst == c.cfg.Rank {
		p.recordFailure(fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, reason))
		_ = sendHello(conn, hello{purpose: linkReady, src: c.cfg.Rank, dst: p.rank}) // fails if the peer is gone
	}
}

// acceptLink makes a link with the memory that p handed over in h.
func (c *Conn) acceptLink(p *peer, setup *linkSetup, h hello) (*link, error) {
	var mine [3]int // mapLink takes ownership
	for i := range mine {
		fd, err := unix.FcntlInt(uintptr(h.handles[i]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeHandles(mine[:i])
			return nil, err
		}
		mine[i] = fd
	}
	memory := h.handles[3]
	h.handles = mine[:]
	l, err := c.mapLink(p, setup.conn, memory, h.ring, h)
	if err != nil {
		return nil, err
	}
	answer := c.newLinkHello(grantLink, p, 0)
	answer.canFetch = l.canFetch
	err = setup.confirmLink(answer)
	if err == nil {
		h, err = receiveHello(setup.conn)
	}
	if err == nil && h.src == p.rank {
		err = h.refusalError()
	}
	if err == nil && (h.purpose != linkReady || h.src != p.rank || h.dst != c.cfg.Rank) {
		closeHandles(h.handles)
		err = errNoHello
	}
	if err != nil {
		l.free()
		return nil, err
	}
	l.canExpose = h.canFetch && !c.cfg.NoSingleCopy
	return l, nil
}
