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

// secureConn performs the TLS handshake of a new connection, if the rank uses TLS, and returns the stream that carries
// packets. On failure it closes the connection and records a *TLSError.
//
// The dialing side completes the handshake before the other side has checked its certificate, so the dialing side
// learns of a rejection only when it reads.
func (c *Conn) secureConn(p *peer, conn *net.TCPConn) (net.Conn, error) {
	_, config := p.addrAndTLS()
	if config == nil {
		return conn, nil
	}
	defer p.removeHandshake(conn)
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
	if !errors.Is(err, net.ErrClosed) { // closed by us
		p.recordFailure(tlsErr)
	}
	if isTLSFault(err) {
		c.queue.pushBroken(p, tlsErr.Addr, tlsErr.Error())
	}
	if accepted && isPlainPeer(err) { // the dialed side has already seen our ClientHello
		alertPlainPeer(conn)
	}
	conn.Close()
	return nil, tlsErr
}

// addHandshake records an accepted connection whose handshake begins. If maxHandshakes are already in progress, it
// closes the oldest. The limit allows a peer to dial again before we notice the end of its last attempt, and closing
// the oldest prevents other processes with the same IP from keeping the peer out.
func (p *peer) addHandshake(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.handshaking) == maxHandshakes {
		p.handshaking[0].Close()
		p.handshaking = slices.Delete(p.handshaking, 0, 1)
	}
	p.handshaking = append(p.handshaking, conn)
}

// removeHandshake records the end of a handshake.
func (p *peer) removeHandshake(conn *net.TCPConn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.handshaking = slices.DeleteFunc(p.handshaking, func(other *net.TCPConn) bool { return other == conn })
}

// isPlainPeer reports whether a handshake failed because the peer appears to use plain TCP.
func isPlainPeer(err error) bool {
	var record tls.RecordHeaderError
	return errors.As(err, &record) || errors.Is(err, os.ErrDeadlineExceeded)
}

// alertPlainPeer reports to a peer without TLS that we use TLS. It sends an unexpected_message alert,
// which a zrlmpid rank recognizes.
func alertPlainPeer(conn *net.TCPConn) {
	if conn.SetDeadline(time.Now().Add(alertTimeout)) != nil {
		return
	}
	if _, err := conn.Write([]byte{recordAlert, 3, 3, 0, 2, 2, 10}); err != nil || conn.CloseWrite() != nil {
		return
	}
	// Closing a connection with unread data would reset it, and the alert would be lost. Errors do not matter
	// here.
	_, _ = io.CopyN(io.Discard, conn, chunkLen)
}

const (
	// alertTimeout is the time for a peer without TLS to read the alert.
	alertTimeout = time.Second
	// recordAlert and recordHandshake are the first bytes of a TLS stream: an alert, or the hello of either side. The
	// next byte is recordVersion. No ZRLMPI header begins with these bytes.
	recordAlert     = 21
	recordHandshake = 22
	recordVersion   = 3
)

// isTLSRecord reports whether b, the beginning of a stream, begins a TLS record.
func isTLSRecord(b []byte) bool {
	return len(b) > 1 && (b[0] == recordAlert || b[0] == recordHandshake) && b[1] == recordVersion
}
