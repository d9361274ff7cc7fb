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

// peer is a rank to which a Conn has, or may have, a connection.
type peer struct {
	rank    int
	profile protocol.Profile
	// free holds the empty chunks. made is the number of all chunks; only the reader of the current link uses
	// it.
	free chan *chunk
	made int
	// tail is the chunk of the last payload or packet that this peer put on the queue, or nil if another event
	// followed or it was taken. broken is the number of queued mpe.RxBroken. Both belong to the queue.
	tail   *chunk
	broken int

	// parts holds the two parts of a packet being sent, and buffers the unwritten rest, so that a send does not
	// allocate.
	parts   [2][]byte
	buffers net.Buffers

	// admission is held while a connection is about to become the link; candidates counts connections that want
	// to.
	admission  sync.Mutex
	candidates atomic.Int32

	// moved has a value if the peer is to be dialed at a new address.
	moved chan struct{}

	mu sync.Mutex
	// addr is the peer's address; tls is nil for plain connections.
	addr netip.AddrPort
	tls  *tls.Config
	// stopDial cancels a pending dial of the previous address.
	stopDial context.CancelFunc
	link     *link // nil while there is no connection
	// last is the error that ended the last connection or attempt.
	last error
	// limited tracks the process limits that have prevented a connection since the last link.
	limited rlimit.Watch
	// shaking are the connections in their TLS handshake, oldest first.
	shaking []*net.TCPConn
}

// current returns the link, or nil and the error that ended the last connection or attempt.
func (p *peer) current() (*link, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.link, p.last
}

// failed records why a connection failed. It reports whether a lasting process limit prevents a connection.
func (p *peer) failed(err error) (limited bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = err
	return p.link == nil && p.limited.Lasts(err, time.Now())
}

// replace makes l the peer's link, and returns the previous link or nil.
func (p *peer) replace(l *link) *link {
	p.mu.Lock()
	defer p.mu.Unlock()
	old := p.link
	p.link, p.limited = l, rlimit.Watch{}
	return old
}

// remove removes l, which is closed, unless another link has replaced it.
func (p *peer) remove(l *link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.link == l {
		p.link, p.last = nil, l.reason
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
	// wire carries the packets if goroutines poll for them; conn, stream and out are nil then.
	wire *wire
	conn *net.TCPConn
	// stream is conn, or the TLS connection on top of it.
	stream net.Conn
	// begun is set once data has arrived.
	begun bool
	// out queues packets to be written to a peer of the extended profile.
	out *outbox
	// closing is closed at the first reason to end the connection, and done when it delivers nothing more to
	// the queue or the inbox.
	closing, done chan struct{}
	once          sync.Once
	// reason is the reason for closing.
	reason error
}

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

// Read reads from the stream, and explains an error that TLS has caused.
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

// close ends the connection; the first reason is kept. It sends no TLS alert, which could block on a peer that
// does not read.
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

// closeWrite shuts down the sending side, or closes the connection if that fails.
func (l *link) closeWrite() {
	half, ok := l.stream.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		l.close(net.ErrClosed)
	}
}

// run makes conn, read and written through stream, the connection to p, and reads from it until it ends. It
// reports whether the peer sent a packet. Its events follow all events of the previous connection on the queue;
// data still to be written to that one is lost. If the previous connection is alive, conn is closed instead.
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

// isBroken reports whether err is about data that the peer sent, and not about the network.
func isBroken(err error) bool {
	var frame *protocol.FrameError
	var tlsErr *TLSError
	return errors.As(err, &frame) || errors.As(err, &tlsErr)
}
