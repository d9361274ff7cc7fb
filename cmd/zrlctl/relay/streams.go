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

// dialTimeout is the time-out for connecting to a rank.
const dialTimeout = 5 * time.Second

// streams holds the TCP listeners of a relay. Each listener is indexed by the rank that it stands for.
type streams struct {
	*Relay
	listeners []*net.TCPListener
	// ctx is done when the relay is closed.
	ctx    context.Context
	cancel context.CancelFunc
}

func listenStreams(r *Relay) (wire, error) {
	s := &streams{Relay: r}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	for rank := range r.plan.Size() {
		ln, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", r.plan.seen.Addr(rank).String())
		if err != nil {
			return s, bindfault.New("tcp", rank, r.plan.seen, err)
		}
		s.listeners = append(s.listeners, ln.(*net.TCPListener))
	}
	for rank, ln := range s.listeners {
		r.tasks.Go(func() { s.accept(rank, ln) })
	}
	return s, nil
}

func (s *streams) close() {
	s.cancel()
	for _, ln := range s.listeners {
		ln.Close()
	}
}

func (s *streams) dropped() uint64 { return 0 }

// accept relays connections to a rank until the relay is closed.
func (s *streams) accept(to int, ln *net.TCPListener) {
	for {
		conn, err := ln.AcceptTCP()
		if s.ctx.Err() != nil {
			if err == nil {
				conn.Close()
			}
			return
		}
		if err != nil { // the peer has reset the connection, or there are no descriptors
			s.refused(err)
			pause(s.ctx, 10*time.Millisecond)
			continue
		}
		source, _ := netip.ParseAddrPort(conn.RemoteAddr().String())
		from := s.plan.own.Resolve(source)
		if from == rankmap.NoRank || from == to {
			s.count(&s.counts.unknown)
			conn.Close()
			continue
		}
		s.tasks.Go(func() { s.serve(from, to, conn) })
	}
}

// serve relays a connection until both directions end, the connection is reset, or the relay is closed.
func (s *streams) serve(from, to int, a *net.TCPConn) {
	// The accepting rank identifies the dialing rank by its IP address. The system chooses the port.
	dialer := net.Dialer{
		LocalAddr: &net.TCPAddr{IP: s.plan.seen.Addr(from).Addr().AsSlice()},
		Timeout:   dialTimeout,
	}
	conn, err := dialer.DialContext(s.ctx, "tcp", s.plan.own.Addr(to).String())
	if err != nil {
		s.refused(err)
		reset(a)
		return
	}
	b := conn.(*net.TCPConn)
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	// If something other than its peers ends the connection, reset it so that both peers notice.
	stop := context.AfterFunc(ctx, func() { reset(a); reset(b) })
	s.mu.Lock()
	s.impairer.Connected(from, to)
	s.impairer.Connected(to, from)
	s.mu.Unlock()
	var directions sync.WaitGroup
	for _, p := range []*pipe{
		{streams: s, from: from, to: to, source: a, sink: b},
		{streams: s, from: to, to: from, source: b, sink: a},
	} {
		p.ctx, p.cancel, p.pieces = ctx, cancel, make(chan piece, pipeLen)
		directions.Go(p.read)
		directions.Go(p.write)
	}
	directions.Wait()
	if stop() { // both directions have ended
		a.Close()
		b.Close()
	}
}

// reset closes a connection in such a way that its peer gets an error.
func reset(conn *net.TCPConn) {
	_ = conn.SetLinger(0) // fails only if the connection is closed
	conn.Close()
}

// pause waits for d, or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
