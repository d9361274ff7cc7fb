package shm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// A rank that is not there is called again after minBackoff, then after twice as long
// each time up to maxBackoff. It knocks when it starts; that is for a knock that went
// astray.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = time.Second
)

// keepDialing keeps a link to p, a higher rank, until the Conn is closed.
func (c *Conn) keepDialing(p *peer) {
	wait, linked := minBackoff, false
	for c.ctx.Err() == nil {
		lasted, err := c.dial(p)
		p.failed(err)
		switch {
		case lasted:
			wait, linked = minBackoff, true
		case linked && errors.Is(err, errNoProcess):
			linked = false
			c.reportGone(p)
		}
		select {
		case <-p.call:
			wait = minBackoff
		case <-time.After(wait - rand.N(wait/4)):
			wait = min(2*wait, maxBackoff)
		case <-c.ctx.Done():
		}
	}
}

// failed notes why there is no link.
func (p *peer) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.link == nil {
		p.last = err
	}
}

// open connects to p's socket, if it is of our user.
func (c *Conn) open(p *peer) (*net.UnixConn, error) {
	dialer := net.Dialer{Timeout: helloTimeout}
	addr := socketAddr(p.addr)
	conn, err := dialer.DialContext(c.ctx, addr.Net, addr.Name)
	if err != nil {
		if errors.Is(err, syscall.ECONNREFUSED) {
			err = fmt.Errorf("%w is rank %d at %v over shared memory", errNoProcess, p.rank, p.addr)
		}
		return nil, err
	}
	if err := sameUser(conn.(*net.UnixConn)); err != nil {
		conn.Close()
		return nil, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err)
	}
	return conn.(*net.UnixConn), nil
}

// dial makes a link to p and serves it until it ends. It reports whether there was
// one.
func (c *Conn) dial(p *peer) (lasted bool, err error) {
	conn, err := c.open(p)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	defer context.AfterFunc(c.ctx, func() { conn.Close() })()
	fd, err := sharedmem.Create(linkLen(c.cfg.Ring))
	if err != nil {
		return false, err
	}
	l, err := c.advertise(p, conn, fd)
	unix.Close(fd)
	if err != nil {
		return false, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err)
	}
	c.serve(l)
	return true, nil
}

// advertise hands memory to p.
func (c *Conn) advertise(p *peer, conn *net.UnixConn, fd int) (*link, error) {
	if err := sendHello(conn, c.linkHello(wantLink, p, c.cfg.Ring, fd)); err != nil {
		return nil, err
	}
	h, err := receiveHello(conn)
	if err != nil {
		return nil, err
	}
	if h.purpose != giveLink || h.src != p.rank || h.dst != c.cfg.Rank {
		closeAll(h.handles)
		return nil, errNoHello
	}
	l, err := c.enter(p, conn, fd, c.cfg.Ring, h)
	if err != nil {
		return nil, err
	}
	l.exposes = h.fetches && !c.cfg.NoSingleCopy
	if err := sendHello(conn, hello{purpose: hasLink, src: c.cfg.Rank, dst: p.rank, fetches: l.fetches}); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// linkHello says where our bell, our doorbell page, our shared buffer and our memory are, and hands over more
// descriptors.
func (c *Conn) linkHello(purpose purpose, p *peer, ring int, more ...int) hello {
	h := hello{purpose: purpose, src: c.cfg.Rank, dst: p.rank, ring: ring, handles: append([]int{c.inbox.doorbell.bell, c.doorbellFD, c.shared.fd}, more...)}
	if !c.cfg.NoSingleCopy {
		h.memory = c.nonce.memoryID()
	}
	return h
}

// enter maps what both sides have agreed on, and tries whether the peer's memory can
// be read. It owns the first three handles of h: bell, doorbell page and shared buffer of the peer.
func (c *Conn) enter(p *peer, conn *net.UnixConn, fd, ring int, h hello) (*link, error) {
	bell, doorbellFD, sharedFD := h.handles[0], h.handles[1], h.handles[2]
	page, err := sharedmem.Map(doorbellFD, doorbellLen)
	unix.Close(doorbellFD)
	var shared []byte
	if err == nil {
		shared, err = sharedmem.MapReadOnly(sharedFD, sharedLen)
	}
	unix.Close(sharedFD)
	var mem []byte
	if err == nil {
		mem, err = sharedmem.Map(fd, linkLen(ring))
	}
	var cred *unix.Ucred
	if err == nil {
		cred, err = credentials(conn)
	}
	if err == nil {
		err = checkBell(bell)
	}
	if err == nil {
		// A full bell must not make us wait.
		err = unix.SetNonblock(bell, true)
	}
	if err != nil {
		sharedmem.Unmap(mem)
		sharedmem.Unmap(shared)
		sharedmem.Unmap(page)
		unix.Close(bell)
		return nil, err
	}
	l := newLink(p, conn, mem, ring, c.cfg.Rank < p.rank, doorbell{page: page, bell: bell})
	l.remote, l.pages = c.remoteOf(p, int(cred.Pid), h.memory)
	l.fetches = l.pages != nil
	l.shared = shared
	return l, nil
}

// serve makes l the link to its peer until it ends.
func (c *Conn) serve(l *link) {
	p := l.peer
	c.mu.Lock()
	p.mu.Lock()
	before := p.link
	if before != nil {
		before.out.invalidate(0) // while nothing is exposed by the new one
	}
	p.link = l
	c.shared.set(p.rank, l.shared)
	l.shared = nil
	c.fresh = append(c.fresh, l)
	l.peerDoorbell.wake() // Publish could not, while there was no link
	p.mu.Unlock()
	c.mu.Unlock()
	if before != nil {
		before.end(errReplaced)
	}
	c.notifyPoll()
	// Nothing more is said: what comes is the end.
	_, err := l.conn.Read(make([]byte, 1))
	if err == nil {
		err = errNoHello
	}
	if c.ctx.Err() != nil {
		err = mpe.ErrTransportClosed
	}
	l.end(fmt.Errorf("the link to rank %d has ended: %w", p.rank, err))
	l.ended.Store(true)
	c.notifyPoll()
}

var errReplaced = errors.New("the peer has made a new one")

// errNoProcess: the rank's socket is not bound.
var errNoProcess = errors.New("no process of this host")

// reportGone has Poll report that no process is p any more, unless there is a link to the next one.
func (c *Conn) reportGone(p *peer) {
	c.mu.Lock()
	p.mu.Lock()
	if p.link == nil { // so that a later link is reported behind it
		c.gone = append(c.gone, p)
	}
	p.mu.Unlock()
	c.mu.Unlock()
	c.notifyPoll()
}

// requestCall asks p, a lower rank, to call.
func (c *Conn) requestCall(p *peer) error {
	conn, err := c.open(p)
	if err == nil {
		defer conn.Close()
		err = sendHello(conn, hello{purpose: requestCall, src: c.cfg.Rank, dst: p.rank})
	}
	p.failed(err)
	return err
}

// afterLink determines whether p, a lower rank whose link has ended, is there. A process that
// ends may close the link before its socket.
func (c *Conn) afterLink(p *peer) {
	for wait := minBackoff; wait <= maxBackoff && c.ctx.Err() == nil; wait *= 2 {
		p.mu.Lock()
		linked := p.link != nil
		p.mu.Unlock()
		if linked {
			return
		}
		if errors.Is(c.requestCall(p), errNoProcess) {
			c.reportGone(p)
			return
		}
		select {
		case <-time.After(wait):
		case <-c.ctx.Done():
		}
	}
}
