package shm

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
)

// A missing rank is called again after minBackoff. The delay doubles with each attempt, up to maxBackoff. A starting
// rank asks to be called (requestCall), so the retries matter only if that request was lost.
const (
	minBackoff = 20 * time.Millisecond
	maxBackoff = time.Second
)

// keepDialing keeps a link to p, a higher rank, until the Conn is closed.
func (c *Conn) keepDialing(p *peer) {
	wait, linked := minBackoff, false
	for c.ctx.Err() == nil {
		lasted, err := c.dial(p)
		c.recordFailure(p, err)
		switch {
		case lasted:
			wait, linked = minBackoff, true
		case linked && errors.Is(err, errNoProcess):
			linked = false
			c.reportGone(p)
		}
		select {
		case <-p.callRequested:
			wait = minBackoff
		case <-time.After(wait - rand.N(wait/4)):
			wait = min(2*wait, maxBackoff)
		case <-c.ctx.Done():
		}
	}
}

// recordFailure records why there is no link. It reports whether a limit of either process is the cause and has
// persisted for some time.
func (p *peer) recordFailure(err error) (limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && p.link == nil {
		p.lastError = err
	}
	return p.limitWatch.HasLasted(err, time.Now())
}

// connectTo connects to the socket of p, if the socket belongs to our user.
func (c *Conn) connectTo(p *peer) (*net.UnixConn, error) {
	conn, err := c.sockets.connect(p)
	if err != nil && !errors.Is(err, errNoProcess) {
		err = fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err)
	}
	return conn, err
}

// dial makes a link to p and serves it until it is closed. It reports whether it made a link.
func (c *Conn) dial(p *peer) (lasted bool, err error) {
	conn, err := c.connectTo(p)
	if err != nil {
		c.refuseOutgoing(p, err)
		return false, err
	}
	defer conn.Close()
	k := &linkSetup{conn: conn}
	defer context.AfterFunc(c.ctx, k.closeConn)()
	fd, err := sharedmem.Create(linkLen(c.cfg.Ring))
	var l *link
	if err == nil {
		l, err = c.offerLink(p, k, fd)
		unix.Close(fd)
	}
	if err != nil {
		c.sendRefusal(p, conn, err)
		return false, fmt.Errorf("sharing memory with rank %d at %v: %w", p.rank, p.addr, err)
	}
	c.serve(l)
	return true, nil
}

// offerLink hands over the memory of a new link to p.
func (c *Conn) offerLink(p *peer, setup *linkSetup, fd int) (*link, error) {
	conn := setup.conn
	if err := sendHello(conn, c.newLinkHello(requestLink, p, c.cfg.Ring, fd)); err != nil {
		return nil, err
	}
	h, err := receiveHello(conn)
	if err != nil {
		return nil, err
	}
	if err := h.refusalError(); err != nil && h.src == p.rank {
		return nil, err
	}
	if h.purpose != grantLink || h.src != p.rank || h.dst != c.cfg.Rank {
		closeHandles(h.handles)
		return nil, errNoHello
	}
	l, err := c.mapLink(p, conn, fd, c.cfg.Ring, h)
	if err != nil {
		return nil, err
	}
	l.canExpose = h.canFetch && !c.cfg.NoSingleCopy
	if err := setup.confirmLink(hello{purpose: linkReady, src: c.cfg.Rank, dst: p.rank,
		canFetch: l.canFetch}); err != nil {
		l.free()
		return nil, err
	}
	return l, nil
}

// newLinkHello returns a hello that carries our bell, doorbell page and shared buffer, and the descriptors in more. It
// contains the address of our nonce, unless single copies are disabled.
func (c *Conn) newLinkHello(purpose purpose, p *peer, ring int, more ...int) hello {
	h := hello{purpose: purpose, src: c.cfg.Rank, dst: p.rank, ring: ring,
		handles: append([]int{c.inbox.doorbell.eventFD, c.doorbellFD, c.shared.fd}, more...)}
	if !c.cfg.NoSingleCopy {
		h.memory = c.nonce.id()
	}
	return h
}

// mapLink maps the memory of a new link, and tests whether we can read the peer's memory. It takes ownership of the
// first three handles in h: the peer's bell, doorbell page and shared buffer.
func (c *Conn) mapLink(p *peer, conn *net.UnixConn, fd, ring int, h hello) (*link, error) {
	bell, doorbellFD, sharedFD := h.handles[0], h.handles[1], h.handles[2]
	page, err := sharedmem.Map(doorbellFD, doorbellLen)
	unix.Close(doorbellFD)
	var shared []byte
	if err == nil {
		shared, err = sharedmem.MapPartReadOnly(sharedFD, sharedLen, c.shared.mapped)
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
		// Writing to a full bell must not block.
		err = unix.SetNonblock(bell, true)
	}
	if err != nil {
		sharedmem.Unmap(mem)
		sharedmem.Unmap(shared)
		sharedmem.Unmap(page)
		unix.Close(bell)
		return nil, err
	}
	l := newLink(p, conn, mem, ring, c.cfg.Rank < p.rank, doorbell{page: page, eventFD: bell})
	l.remote, l.pages = c.openRemote(p, int(cred.Pid), h.memory)
	l.canFetch = l.pages != nil
	l.shared = shared
	return l, nil
}

// serve makes l the link to its peer, and returns when l is closed.
func (c *Conn) serve(l *link) {
	p := l.peer
	c.mu.Lock()
	p.mu.Lock()
	before := p.link
	if before != nil {
		before.out.invalidate(0) // before the new link exposes anything
	}
	p.link, p.limitWatch = l, rlimit.Watch{}
	c.shared.setPeer(p.rank, l.shared)
	l.shared = nil
	c.newLinks = append(c.newLinks, l)
	l.peerDoorbell.wake() // without a link, Publish could not wake it
	p.mu.Unlock()
	c.mu.Unlock()
	if before != nil {
		before.end(errReplaced)
	}
	c.notifyPoll()
	// The peer sends nothing more except its closing message.
	_, _, _, err := receive(l.conn, make([]byte, 1), nil)
	if err == nil {
		err = errClosed
	}
	p.mu.Lock()
	p.closed = errors.Is(err, errClosed)
	p.mu.Unlock()
	if c.ctx.Err() != nil {
		err = mpe.ErrTransportClosed
	}
	l.end(fmt.Errorf("the link to rank %d is closed: %w", p.rank, err))
	l.ended.Store(true)
	c.notifyPoll()
}

// errClosed is returned when the peer has closed its Conn.
var errClosed = errors.New("the peer shut down")

var errReplaced = errors.New("the peer made a new one")

// errNoProcess is returned when no process is bound to the rank's socket.
var errNoProcess = errors.New("not a process of this host")

// reportGone makes Poll report that the process of p is gone, unless p already has a new link.
func (c *Conn) reportGone(p *peer) {
	p.mu.Lock()
	kind := mpe.RxPeerDied
	if p.closed {
		kind = mpe.RxPeerClosed
	}
	p.mu.Unlock()
	c.reportEvent(p, mpe.RxPacket{Kind: kind, Peer: p.rank, SourceAddr: p.addr})
}

// reportEvent passes a packet about p to Poll, unless p has a link.
func (c *Conn) reportEvent(p *peer, what mpe.RxPacket) {
	c.mu.Lock()
	p.mu.Lock()
	if p.link == nil { // under the lock, so that a later link is reported after it
		same := func(u unlinkedEvent) bool { return u.peer == p && u.packet.Kind == what.Kind }
		c.unlinked = append(slices.DeleteFunc(c.unlinked, same), unlinkedEvent{p, what})
	}
	p.mu.Unlock()
	c.mu.Unlock()
	c.notifyPoll()
}

// requestCall asks p, a lower rank, to call us.
func (c *Conn) requestCall(p *peer) error {
	conn, err := c.connectTo(p)
	if err == nil {
		defer conn.Close()
		defer context.AfterFunc(c.ctx, func() { conn.Close() })()
		err = sendHello(conn, hello{purpose: requestCall, src: c.cfg.Rank, dst: p.rank})
		if err == nil {
			err = awaitAnswer(conn)
		}
	}
	c.recordFailure(p, err)
	return err
}

// awaitAnswer waits for the answer to a request on conn. It returns the limit that the peer reports, or nil if the peer
// closes the connection, as it does before it calls us.
func awaitAnswer(conn *net.UnixConn) error {
	h, err := receiveHello(conn)
	closeHandles(h.handles)
	if err == nil {
		return h.refusalError()
	}
	return nil
}

// probeAfterLink determines whether p, a lower rank whose link ended, is still running. It retries, because an exiting
// process may close the link before it closes its listening socket.
func (c *Conn) probeAfterLink(p *peer) {
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
