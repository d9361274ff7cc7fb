package relay

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/transport/bindfault"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// dialTimeout is the timeout for connecting to a rank.
const dialTimeout = 5 * time.Second

// streams holds the TCP listeners of a relay. The index of each listener is the rank that the listener represents.
type streams struct {
	*Relay
	listeners []*net.TCPListener
	// ctx is done when the relay is closed.
	ctx    context.Context
	cancel context.CancelFunc
}

// listenStreams binds all listeners before it accepts any connection. Errors are as in listenDatagrams.
func listenStreams(relay *Relay) (socketSet, error) {
	s := &streams{Relay: relay}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for rank := range relay.plan.Size() {
		ln, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", relay.plan.relayAddrs.Addr(rank).String())
		if err != nil {
			return s, bindfault.New("tcp", rank, relay.plan.relayAddrs, err)
		}
		s.listeners = append(s.listeners, ln.(*net.TCPListener))
	}
	for rank, ln := range s.listeners {
		relay.tasks.Go(func() { s.acceptLoop(rank, ln) })
	}
	return s, nil
}

func (s *streams) close() {
	s.cancel()
	for _, ln := range s.listeners {
		ln.Close()
	}
}

func (s *streams) socketDrops() uint64 { return 0 }

// acceptLoop relays connections to a rank until the relay is closed.
func (s *streams) acceptLoop(to int, ln *net.TCPListener) {
	for {
		conn, err := ln.AcceptTCP()
		if s.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // the peer has reset the connection, or there are no descriptors
			s.countRefused(err)
			sleep(s.ctx, 10*time.Millisecond)
			continue
		}
		source, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		from := s.plan.realAddrs.Resolve(source)
		if from == rankmap.NoRank || from == to {
			s.increment(&s.counts.unknownSource)
			conn.Close()
			continue
		}
		s.tasks.Go(func() { s.relayConn(from, to, conn) })
	}
}

// relayConn relays a connection until both directions are closed, the connection is reset, or the relay is closed.
func (s *streams) relayConn(from, to int, a *net.TCPConn) {
	// The accepting rank identifies the dialing rank by its IP address. The system chooses the port.
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: s.plan.relayAddrs.Addr(from).Addr().AsSlice()},
		Timeout:   dialTimeout,
	}
	conn, err := dialer.DialContext(s.ctx, "tcp", s.plan.realAddrs.Addr(to).String())
	if err != nil {
		s.countRefused(err)
		resetConn(a)
		return
	}
	b := conn.(*net.TCPConn)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	// If anything other than its peers ends the connection, reset it, so that both peers notice.
	stop := context.AfterFunc(ctx, func() { resetConn(a); resetConn(b) })
	s.mu.Lock()
	s.impairer.NewConnection(from, to)
	s.impairer.NewConnection(to, from)
	s.mu.Unlock()
	var directions sync.WaitGroup
	for _, p := range []*pipe{
		{streams: s, from: from, to: to, source: a, sink: b},
		{streams: s, from: to, to: from, source: b, sink: a},
	} {
		p.ctx, p.cancel, p.pieces = ctx, cancel, make(chan piece, maxDelayedPieces)
		directions.Go(p.readLoop)
		directions.Go(p.writeLoop)
	}
	directions.Wait()
	if stop() { // both directions are done
		a.Close()
		b.Close()
	}
}

// resetConn closes a connection with a reset, so that its peer gets an error.
func resetConn(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if the connection is closed
	conn.Close()
}

// sleep waits for d, or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
