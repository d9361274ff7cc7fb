package udp

import (
	"bytes"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/transport/impair"
)

// maxReady is the maximum number of datagrams waiting for recv. While ready is full, no more datagrams are read from
// the system.
const maxReady = 1024

// impairedSocket is a plain socket that injects faults into its datagrams, in both directions, as an impair.Impairer
// determines.
type impairedSocket struct {
	*plainSocket
	rank      int
	startTime time.Time

	// mu guards the fields below, peers and calls of plainSocket.send.
	mu       sync.Mutex
	changed  sync.Cond
	impairer *impair.Impairer
	delayed  impair.Queue[delayedDatagram]
	ready    []incoming
	err      error // the reason why no more datagrams are read
}

// delayedDatagram is a datagram that is due later. If from, its source, is valid, recv returns it; otherwise it is sent
// to peer.
type delayedDatagram struct {
	bytes []byte
	peer  int
	from  netip.AddrPort
}

// newImpairedSocket implements opener for a Config with Impair.
func newImpairedSocket(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error) {
	plain := &plainSocket{conn: conn, peers: peers, recvBuf: make([]byte, 1<<16)}
	s := &impairedSocket{plainSocket: plain, rank: cfg.Rank, startTime: time.Now(), impairer: cfg.Impair}
	s.changed.L = &s.mu
	go s.read()
	return s, nil
}

func (s *impairedSocket) resolve(peers []netip.AddrPort) (func(), error) {
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.peers = peers
	}, nil
}

// send implements socket. A datagram that the impairer drops or delays counts as sent.
func (s *impairedSocket) send(out []outgoing, mayWait bool) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range out {
		b := bytes.Join(out[i].parts[:], nil)
		now := time.Now()
		s.deliverDue(now) // so that this datagram does not overtake them if the timer is late
		for _, d := range s.impairer.DecideDatagram(now.Sub(s.startTime), s.rank, out[i].peer, b) {
			if err := s.deliver(now, d, delayedDatagram{bytes: b, peer: out[i].peer}, mayWait); err != nil {
				return i, err
			}
		}
	}
	return len(out), nil
}

// deliver delivers a copy of a datagram, altered and delayed according to d. The caller holds mu.
func (s *impairedSocket) deliver(now time.Time, d impair.Delivery, datagram delayedDatagram, mayWait bool) error {
	datagram.bytes = bytes.Clone(datagram.bytes)
	d.Apply(datagram.bytes)
	if d.After > 0 {
		s.delayed.Push(now.Add(d.After), datagram)
		time.AfterFunc(d.After, s.deliverLate)
		return nil
	}
	return s.deliverNow(datagram, mayWait)
}

// deliverLate delivers all delayed datagrams that are due.
func (s *impairedSocket) deliverLate() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.deliverDue(time.Now())
}

// deliverDue does the work of deliverLate; the caller holds mu. It drops datagrams that the system does not accept.
func (s *impairedSocket) deliverDue(now time.Time) {
	for x, ok := s.delayed.Pop(now); ok; x, ok = s.delayed.Pop(now) {
		_ = s.deliverNow(x, true)
	}
}

// deliverNow sends a datagram, or adds it to ready if it was received.
func (s *impairedSocket) deliverNow(datagram delayedDatagram, mayWait bool) error {
	if datagram.from.IsValid() {
		s.ready = append(s.ready, incoming{bytes: datagram.bytes, from: datagram.from})
		s.changed.Broadcast()
		return nil
	}
	_, err := s.plainSocket.send([]outgoing{{peer: datagram.peer, parts: [3][]byte{datagram.bytes}}}, mayWait)
	return err
}

// read reads datagrams from the system until the socket is closed.
func (s *impairedSocket) read() {
	var in [1]incoming
	for {
		_, err := s.plainSocket.recv(in[:])
		if isAsyncError(err) {
			continue
		}
		if !s.handleRead(in[0], err) {
			return
		}
	}
}

// handleRead handles a datagram that was read, or an error, and waits until ready has space for more. It returns false
// if no more datagrams can be read.
func (s *impairedSocket) handleRead(in incoming, err error) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		s.changed.Broadcast()
		return false
	}
	now := time.Now()
	s.deliverDue(now)
	x := delayedDatagram{bytes: in.bytes, from: in.from}
	if peer := s.peerAt(in.from); peer < 0 { // an unknown source: the engine drops it
		_ = s.deliver(now, impair.Delivery{Flip: -1}, x, true) // cannot fail, because nothing is sent
	} else {
		for _, d := range s.impairer.DecideDatagram(now.Sub(s.startTime), peer, s.rank, in.bytes) {
			_ = s.deliver(now, d, x, true)
		}
	}
	for len(s.ready) >= maxReady && s.err == nil {
		s.changed.Wait()
	}
	return s.err == nil
}

// peerAt returns the peer with the given address. If no peer has that address, it returns a peer with the same IP
// address and another port, or -1.
func (s *impairedSocket) peerAt(from netip.AddrPort) int {
	found := -1
	for rank, addr := range s.peers {
		switch {
		case addr == from:
			return rank
		case addr.Addr() == from.Addr():
			found = rank
		}
	}
	return found
}

func (s *impairedSocket) recv(in []incoming) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.ready) == 0 && s.err == nil {
		s.changed.Wait()
	}
	if len(s.ready) == 0 {
		return 0, s.err
	}
	n := copy(in, s.ready)
	s.ready = s.ready[:copy(s.ready, s.ready[n:])]
	s.changed.Broadcast()
	return n, nil
}

func (s *impairedSocket) close() error {
	err := s.conn.Close()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = net.ErrClosed
	}
	s.ready = nil
	s.changed.Broadcast()
	return err
}
