package tcp

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"time"
)

// secure does the TLS handshake of a new connection, if the rank has TLS, and
// returns what packets go by. If the peer is refused the connection is closed, and
// the reason noted; the error is a *TLSError.
//
// The side that dialed is done before the other has examined its certificate: a
// refusal is what it reads first.
func (c *Conn) secure(p *peer, conn *net.TCPConn) (net.Conn, error) {
	_, config := p.at()
	if config == nil {
		return conn, nil
	}
	defer p.shaken(conn)
	stream, accepted := tls.Client(conn, config), p.rank < c.cfg.Rank
	if accepted {
		stream = tls.Server(conn, config)
	}
	err := conn.SetDeadline(time.Now().Add(c.cfg.HandshakeTimeout))
	if err == nil {
		err = stream.HandshakeContext(c.ctx)
	}
	if err == nil {
		err = conn.SetDeadline(time.Time{})
	}
	if err == nil {
		return stream, nil
	}
	tlsErr := &TLSError{Addr: remoteAddr(conn), Err: err}
	if !errors.Is(err, net.ErrClosed) { // which is a matter of ours
		p.failed(tlsErr)
	}
	if isTLSFault(err) {
		c.queue.pushBroken(p, tlsErr.Addr)
	}
	if accepted && speaksNoTLS(err) { // one that we have called has had our hello
		answerPlain(conn)
	}
	conn.Close()
	return nil, tlsErr
}

// shake notes a connection that the peer has made and whose handshake is to begin.
// So many are enough for a peer that dials again before we have seen its last
// attempt end; what else has its IP shall not keep it out, and so the oldest goes.
func (p *peer) shake(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.shaking) == maxShaking {
		p.shaking[0].Close()
		p.shaking = slices.Delete(p.shaking, 0, 1)
	}
	p.shaking = append(p.shaking, conn)
}

// shaken notes the end of a handshake.
func (p *peer) shaken(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shaking = slices.DeleteFunc(p.shaking, func(other *net.TCPConn) bool { return other == conn })
}

// speaksNoTLS reports whether a handshake failed because the peer, as it seems,
// has plain TCP.
func speaksNoTLS(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, os.ErrDeadlineExceeded)
}

// answerPlain reports to a peer without TLS that we use it, by the alert of an
// unexpected message, which such a peer of ours knows.
func answerPlain(conn *net.TCPConn) {
	if conn.SetDeadline(time.Now().Add(alertTimeout)) != nil {
		return
	}
	if _, err := conn.Write([]byte{recordAlert, 3, 3, 0, 2, 2, 10}); err != nil || conn.CloseWrite() != nil {
		return
	}
	// Closed with something unread, the connection would be reset, and the
	// alert lost. What comes of it does not matter any more.
	_, _ = io.CopyN(io.Discard, conn, chunkLen)
}

const (
	// alertTimeout is how long a peer without TLS has to take the alert.
	alertTimeout = time.Second
	// recordAlert and recordHandshake are the first bytes that TLS begins
	// with: an alert, and the hello of either side. A header begins with
	// neither.
	recordAlert     = 21
	recordHandshake = 22
)

// isTLSRecord reports whether a stream that begins with b is TLS.
func isTLSRecord(b byte) bool { return b == recordAlert || b == recordHandshake }
