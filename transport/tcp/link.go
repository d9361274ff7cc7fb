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

// peer is a rank that is spoken to.
type peer struct {
	rank    int
	profile protocol.Profile
	// free are the chunks that wait to be filled; made, which only the
	// running link's reader touches, is how many there are in all.
	free chan *chunk
	made int
	// tail is the payload that this peer put on the queue last, if nothing
	// followed and it is still there; broken is how many mpe.RxBroken are
	// there. Both belong to the queue.
	tail   *chunk
	broken int

	// parts is room for the two parts of what is sent, and buffers for what
	// is left of them, so that sending allocates nothing.
	parts   [2][]byte
	buffers net.Buffers

	// admission is held while a connection is about to become the link, and
	// candidates is how many are.
	admission  sync.Mutex
	candidates atomic.Int32

	// moved has a value if the peer is to be dialed anew.
	moved chan struct{}

	mu sync.Mutex
	// addr is where it is; tls is nil where connections are plain.
	addr netip.AddrPort
	tls  *tls.Config
	// stopDial ends an attempt to connect to where it was.
	stopDial context.CancelFunc
	link     *link // nil while there is no connection
	// last is the error that ended the last connection or attempt.
	last error
	// limited observes the limits that have prevented a connection since there was one.
	limited rlimit.Watch
	// shaking are the connections on which TLS is not done yet, oldest first.
	shaking []*net.TCPConn
}

// current returns the link, or nil and what became of the last.
func (p *peer) current() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link, p.last
}

// failed records why a connection failed, and reports whether there is none because of a limit of this process that
// lasts.
func (p *peer) failed(err error) (limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
	return p.link == nil && p.limited.Lasts(err, time.Now())
}

// replace makes l the peer's link, and returns the one before.
func (p *peer) replace(l *link) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.link
	p.link, p.limited = l, rlimit.Watch{}
	return old
}

// remove takes l, which is closed, away, unless another link has replaced it.
func (p *peer) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link, p.last = nil, l.reason
	}
}

var (
	errReplaced   = errors.New("the peer has made a new connection")
	errPeerClosed = errors.New("the peer closed the connection")
	errMoved      = errors.New("the peer is said to be at another address now")
)

// link is one connection to a peer.
type link struct {
	peer *peer
	from netip.AddrPort
	// wire is what packets go by if waiting goroutines poll for them. Then
	// there are no conn, stream and out.
	wire *wire
	conn *net.TCPConn
	// stream is conn, or the TLS on it.
	stream net.Conn
	// begun says that something has arrived.
	begun bool
	// out is what waits to be written, for a peer of the extended profile.
	out *outbox
	// closing is closed at the first reason to give the connection up, and
	// done when nothing of it reaches the queue, or the inbox, any more.
	closing, done chan struct{}
	once          sync.Once
	// reason is why closing is closed.
	reason error
}

func (c *Conn) newLink(p *peer, conn *net.TCPConn, stream net.Conn) *link {
	l := &link{peer: p, conn: conn, stream: stream, from: remoteAddr(conn), closing: make(chan struct{}), done: make(chan struct{})}
	if p.profile == protocol.Extended {
		l.out = newOutbox(c.cfg.SendQueue)
	}
	return l
}

func remoteAddr(conn *net.TCPConn) netip.AddrPort {
	addr := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(addr.Addr().Unmap(), addr.Port())
}

// Read reads from the stream, and explains what TLS has to do with an error.
func (l *link) Read(b []byte) (int, error) {
	n, err := l.stream.Read(b)
	if l.stream == net.Conn(l.conn) {
		if n > 0 && !l.begun && isTLSRecord(b[0]) {
			return 0, &TLSError{Addr: l.from, Err: errSpeaksTLS}
		}
	} else if err != nil && isTLSFault(err) {
		err = &TLSError{Addr: l.from, Err: err}
	}
	l.begun = l.begun || n > 0
	return n, err
}

// close ends the connection; the first reason counts. TLS is not informed, which
// might have to wait for a peer that takes nothing.
func (l *link) close(reason error) {
	l.once.Do(func() {
		l.reason = reason
		close(l.closing)
		if l.wire != nil {
			l.wire.shut()
			return
		}
		l.conn.Close()
	})
}

// closeWrite shuts the sending side down; it closes the connection then.
func (l *link) closeWrite() {
	half, ok := l.stream.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.close(net.ErrClosed)
	}
}

// run makes conn, by way of stream, the connection to p and reads from it until it
// ends. It reports whether the peer has sent a packet. What it puts on the queue
// comes behind all that the connection before has put there; what waited to be
// written to that is lost. If the one before is alive, conn is closed instead.
func (c *Conn) run(p *peer, conn *net.TCPConn, stream net.Conn) (worked bool) {
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
	p.admission.Unlock()
	c.closeIfMoved(l)
	defer close(l.done)
	defer context.AfterFunc(c.ctx, func() { l.close(net.ErrClosed) })()
	if old != nil {
		old.close(errReplaced)
		<-old.done
	}
	var err error // why reading ended
	if c.put(p, l, mpe.RxConnected, nil) {
		worked, err = c.read(p, l)
	}
	if errors.Is(err, io.EOF) {
		err = errPeerClosed
	}
	l.close(err)
	p.remove(l)
	if isBroken(err) {
		c.queue.pushBroken(p, l.from)
	}
	return worked
}

// isBroken reports whether err is about what the peer has sent, and not about the
// network.
func isBroken(err error) bool {
	var frame *protocol.FrameError
	var tlsErr *TLSError
	return errors.As(err, &frame) || errors.As(err, &tlsErr)
}
