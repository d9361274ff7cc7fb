package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// acceptPause is the pause after an error of accept, which is mostly a lack
	// of file descriptors.
	acceptPause = 100 * time.Millisecond
	// maxCallers is how many callers may be in the middle of their hello at once.
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
			select {
			case <-time.After(acceptPause):
				continue
			case <-c.ctx.Done():
				return
			}
		}
		c.tasks.Go(func() {
			defer conn.Close()
			defer context.AfterFunc(c.ctx, func() { conn.Close() })()
			l := c.answer(conn)
			<-callers
			if l != nil {
				c.serve(l)
				c.afterLink(l.peer)
			}
		})
	}
}

// answer does what a caller wants, and returns the link if that is one.
func (c *Conn) answer(conn *net.UnixConn) *link {
	h, err := receiveHello(conn)
	if errors.Is(err, errVersion) {
		c.refuseVersion(conn, h, err)
	}
	if err != nil {
		return nil // whichever process it is
	}
	defer closeAll(h.handles)
	p, err := c.peer(h.src)
	switch {
	case err != nil || h.dst != c.cfg.Rank:
	case h.purpose == requestCall && p.rank > c.cfg.Rank:
		select {
		case p.call <- struct{}{}:
		default:
		}
	case h.purpose == wantLink && p.rank < c.cfg.Rank:
		l, err := c.accept(p, conn, h)
		if err != nil {
			p.failed(fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err))
			return nil
		}
		return l
	}
	return nil
}

// refuseVersion notes that a peer is of another version, and says ours, so that it notes that as well.
func (c *Conn) refuseVersion(conn *net.UnixConn, h hello, reason error) {
	if p, err := c.peer(h.src); err == nil && h.dst == c.cfg.Rank {
		p.failed(fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, reason))
		_ = sendHello(conn, hello{purpose: hasLink, src: c.cfg.Rank, dst: p.rank}) // it may be gone
	}
}

// accept makes a link of the memory that p has handed over.
func (c *Conn) accept(p *peer, conn *net.UnixConn, h hello) (*link, error) {
	var mine [3]int // enter owns them
	for i := range mine {
		fd, err := unix.FcntlInt(uintptr(h.handles[i]), unix.F_DUPFD_CLOEXEC, 0)
		if err != nil {
			closeAll(mine[:i])
			return nil, err
		}
		mine[i] = fd
	}
	memory := h.handles[3]
	h.handles = mine[:]
	l, err := c.enter(p, conn, memory, h.ring, h)
	if err != nil {
		return nil, err
	}
	answer := c.linkHello(giveLink, p, 0)
	answer.fetches = l.fetches
	err = sendHello(conn, answer)
	if err == nil {
		h, err = receiveHello(conn)
	}
	if err == nil && (h.purpose != hasLink || h.src != p.rank || h.dst != c.cfg.Rank) {
		closeAll(h.handles)
		err = errNoHello
	}
	if err != nil {
		l.free()
		return nil, err
	}
	l.exposes = h.fetches && !c.cfg.NoSingleCopy
	return l, nil
}
