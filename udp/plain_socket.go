package udp

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// plainSocket is a socket for any system. It sends and receives one datagram per system call.
type plainSocket struct {
	conn  *net.UDPConn
	peers []netip.AddrPort
	// sendBuf is the buffer in which the parts of a datagram are joined.
	sendBuf []byte
	// recvBuf is the receive buffer. The longest UDP datagram fits in it, because on some systems receiving a datagram
	// that does not fit fails with an error that does not include the length.
	recvBuf []byte
}

func newPlainSocket(conn *net.UDPConn, peers []netip.AddrPort) (socket, error) {
	return &plainSocket{conn: conn, peers: peers, recvBuf: make([]byte, 1<<16)}, nil
}

func (s *plainSocket) capabilities() capabilities { return capabilities{sendBatch: 1, recvBatch: 1} }

func (s *plainSocket) refusals() []Refusal { return nil }

func (s *plainSocket) pathDatagramLen(int) int { return 0 }

func (s *plainSocket) drops() (uint32, error) { return 0, errors.ErrUnsupported }

func (s *plainSocket) resolve(peers []netip.AddrPort) (func(), error) {
	return func() { s.peers = peers }, nil
}

// send implements socket. Package net has no non-blocking write, so a deadline limits the wait unless mayWait is set.
func (s *plainSocket) send(out []outgoing, mayWait bool) (int, error) {
	if !mayWait {
		if err := s.conn.SetWriteDeadline(time.Now().Add(fullTimeout)); err != nil {
			return 0, err
		}
		// SetWriteDeadline fails only for a closed socket, which is no longer used.
		defer func() { _ = s.conn.SetWriteDeadline(time.Time{}) }()
	}
	for i := range out {
		s.sendBuf = s.sendBuf[:0]
		for _, part := range out[i].parts {
			s.sendBuf = append(s.sendBuf, part...)
		}
		if _, err := s.conn.WriteToUDPAddrPort(s.sendBuf, s.peers[out[i].peer]); err != nil {
			return i, err
		}
	}
	return len(out), nil
}

// These methods are for sockets with capabilities.canPoll, which a plain socket lacks.
func (s *plainSocket) poll([]incoming) (int, error)                        { return 0, nil }
func (s *plainSocket) pollInto([]incoming, int, []byte) (int, error)       { return 0, nil }
func (s *plainSocket) peek([]byte) (n int, from netip.AddrPort, err error) { return 0, from, nil }
func (s *plainSocket) isDrained() bool                                     { return true }
func (s *plainSocket) sleep() bool                                         { return true }
func (s *plainSocket) unwatch()                                            {}
func (s *plainSocket) pollFD() int                                         { return -1 }

func (s *plainSocket) recv(in []incoming) (int, error) {
	n, from, err := s.conn.ReadFromUDPAddrPort(s.recvBuf)
	if err != nil {
		return 0, err
	}
	in[0] = incoming{bytes: s.recvBuf[:n], from: from}
	return 1, nil
}

func (s *plainSocket) close() error { return s.conn.Close() }
