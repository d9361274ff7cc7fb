package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// peer is a rank that a Conn may have a connection to.
type peer struct {
	rank    int
	profile protocol.Profile
	// freeChunks holds the empty chunks. chunksMade counts all chunks ever allocated; only the reader of the current
	// link uses it.
	freeChunks chan *chunk
	chunksMade int
	// tailChunk is the chunk of the last payload or packet that this peer added to the queue. It is nil once another
	// event follows or the chunk leaves the queue. brokenQueued is the number of queued mpe.RxBroken. The queue owns
	// both.
	tailChunk    *chunk
	brokenQueued int

	// sendParts holds the two parts of the packet being sent, and buffers the part of it not yet written. They are
	// fields so that a send does not allocate.
	sendParts [2][]byte
	buffers   net.Buffers

	// admissionMu is held while a connection is replacing the link. candidates is the number of connections waiting for
	// the lock.
	admissionMu sync.Mutex
	candidates  atomic.Int32

	// addrChanged contains an element if the peer has a new address to dial.
	addrChanged chan struct{}

	mu sync.Mutex
	// addr is the peer's address; tls is nil for plain connections.
	addr netip.AddrPort
	tls  *tls.Config
	// stopDial cancels a pending dial of the peer's previous address.
	stopDial context.CancelFunc
	link     *link // nil while there is no connection
	// lastError is the error that ended the last connection or the last attempt to connect.
	lastError error
	// limitWatch tracks the process limits that have prevented a connection since the last link.
	limitWatch rlimit.Watch
	// handshaking lists the connections whose TLS handshake is in progress, oldest first.
	handshaking []*net.TCPConn
}

// currentLink returns the link. Without a link, it returns nil and the error that ended the last connection or the last
// attempt to connect.
func (p *peer) currentLink() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link, p.lastError
}

// recordFailure records why a connection failed. It reports whether a limit of the process is the cause and has
// persisted for some time.
func (p *peer) recordFailure(err error) (limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastError = err
	return p.link == nil && p.limitWatch.HasLasted(err, time.Now())
}

// replace makes l the peer's link, and returns the previous link, if any.
func (p *peer) replace(l *link) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.link
	p.link, p.limitWatch = l, rlimit.Watch{}
	return old
}

// remove removes the closed link l, unless another link has already replaced it.
func (p *peer) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link, p.lastError = nil, l.reason
	}
}

var (
	errReplaced   = errors.New("the peer made a new connection")
	errPeerClosed = errors.New("the peer closed the connection")
	errMoved      = errors.New("the peer's address was changed")
)

// link is one connection to a peer.
type link struct {
	peer *peer
	from netip.AddrPort
	// wire carries the packets if goroutines poll for them; conn, stream and out are then nil.
	wire *wire
	conn *net.TCPConn
	// stream is conn, or the TLS connection on top of it.
	stream net.Conn
	// hasData is set once data is received.
	hasData bool
	// out queues packets to be written to a peer of the extended profile.
	out *outbox
	// closing is closed when the first reason to end the connection occurs. done is closed once the link delivers
	// nothing more to the queue or the inbox.
	closing, done chan struct{}
	closeOnce     sync.Once
	// reason is the reason for closing.
	reason error
}

// newLink returns the link for a connection that goroutines read. Only the extended profile has an outbox: packets of
// the other profiles are written by their sender.
func (c *Conn) newLink(p *peer, conn *net.TCPConn, stream net.Conn) *link {
	l := &link{peer: p, conn: conn, stream: stream, from: remoteAddr(conn), closing: make(chan struct{}),
		done: make(chan struct{})}
	if p.profile == protocol.Extended {
		l.out = newOutbox(c.cfg.SendQueue)
	}
	return l
}

func remoteAddr(conn *net.TCPConn) netip.AddrPort {
	addr := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// Read reads from the stream. It adds an explanation to errors caused by TLS.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.stream.Read(b)
	if l.stream == net.Conn(l.conn) {
		if !l.hasData && isTLSRecord(b[:n]) {
			return 0, &TLSError{Addr: l.from, Err: errPeerUsesTLS}
		}
	} else if err != nil && isTLSFault(err) {
		err = &TLSError{Addr: l.from, Err: err}
	}
	l.hasData = l.hasData || n > 0
	return n, err
}

// close closes the connection for the given reason; only the first call takes effect. It sends no TLS alert, which
// could block if the peer does not read.
func (l *link) close(reason error) {
	l.closeOnce.Do(func() {
		l.reason = reason
		close(l.closing)
		if l.wire != nil {
			l.wire.shut()
			return
		}
		l.conn.Close()
	})
}

// closeWrite shuts down the sending side, or closes the connection if that fails.
func (l *link) closeWrite() {
	half, ok := l.stream.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.close(net.ErrClosed)
	}
}

// runLink makes conn the connection to p, and reads from it until it is closed. Data is read and written through
// stream. It reports whether the peer sent a packet. All events of the previous connection precede the events of conn
// in the queue; data not yet written to the previous connection is lost. If the previous connection is alive, runLink
// closes conn instead.
func (c *Conn) runLink(p *peer, conn *net.TCPConn, stream net.Conn) (worked bool) {
	if !c.admit(p, conn, stream) {
		return false
	}
	if c.inbox != nil {
		return c.inbox.run(p, conn)
	}
	l := c.newLink(p, conn, stream)
	if l.out != nil {
		c.tasks.Go(func() { c.writeAll(l) })
	}
	old := p.replace(l)
	p.admissionMu.Unlock()
	c.closeIfMoved(l)
	defer close(l.done)
	defer context.AfterFunc(c.ctx, func() { l.close(net.ErrClosed) })()
	if old != nil {
		old.close(errReplaced)
		<-old.done
	}
	var err error // the reason why reading ended
	if c.enqueue(p, l, mpe.RxConnected, nil) {
		worked, err = c.readLink(p, l)
	}
	if errors.Is(err, io.EOF) {
		err = errPeerClosed
	}
	l.close(err)
	p.remove(l)
	if isInvalidData(err) {
		c.queue.pushBroken(p, l.from, err.Error())
	}
	return worked
}

// isInvalidData reports whether err concerns the data sent by the peer, not the network.
func isInvalidData(err error) bool {
	var frame *protocol.FrameError
	var tlsErr *TLSError
	return errors.As(err, &frame) || errors.As(err, &tlsErr)
}
