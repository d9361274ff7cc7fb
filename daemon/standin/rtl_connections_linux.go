package standin

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Limits on a simulation's TCP connections. Except for sendBuffer, they are the limits of the deployed shell.
const (
	maxConnections = 8
	connectWithin  = time.Second
	// sendBuffer limits the bytes from the role that wait to be written to connections. As many again may be in
	// the process of being written.
	sendBuffer = 64 << 10
	// flushWithin is the time to write the role's remaining data at the end of a simulation.
	flushWithin = time.Second
	// acceptPause is the pause after an accept error. Usually, the process has run out of descriptors.
	acceptPause = 100 * time.Millisecond
)

// errConnections reports that the maximum number of connections has been reached.
var errConnections = errors.New("the shell supports only 8 connections")

// session identifies a connection in the same way as the shell does.
type session struct {
	rank      int
	port, own uint16
}

// connection is a TCP connection with another rank.
type connection struct {
	session
	conn net.Conn
	// chunk contains received data. It may be reused when taken has a value.
	buf, chunk []byte
	taken      chan struct{}
}

// batch contains data from the role for one or more sessions.
type batch struct {
	bytes    []byte
	segments []segment
}

// segment is the part of a batch that belongs to one session. It ends before byte end.
type segment struct {
	session
	end int
}

// connections manages the TCP connections of one run of a simulator. Its methods must be called by a single
// goroutine.
type connections struct {
	rank      int
	addresses []netip.AddrPort
	log       *zap.Logger
	failure   func() // counts a failure

	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	listeners []net.Listener
	arrived   chan *connection
	wake      chan struct{}
	flushed   chan struct{}

	mu     sync.Mutex
	open   []*connection
	live   int // number of connections with a reader
	queue  batch
	ending bool
	stats  state.Connections
	failed string // the last error that was logged
}

// newConnections returns the connections of a rank. The caller must call close.
func newConnections(rank int, addresses []netip.AddrPort, log *zap.Logger, failure func()) *connections {
	c := &connections{
		rank: rank, addresses: addresses, log: log, failure: failure,
		arrived: make(chan *connection, maxConnections), wake: make(chan struct{}, 1), flushed: make(chan struct{}),
	}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.tasks.Go(func() {
		<-c.ctx.Done()
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, k := range c.open {
			k.conn.Close()
		}
	})
	c.tasks.Go(c.write)
	return c
}

// close closes all connections after the role's data has been written or flushWithin has passed.
func (c *connections) close() {
	for _, l := range c.listeners {
		l.Close()
	}
	c.mu.Lock()
	c.ending = true
	c.mu.Unlock()
	c.signal()
	timer := time.NewTimer(flushWithin)
	defer timer.Stop()
	select {
	case <-c.flushed:
	case <-timer.C:
	}
	c.cancel()
	c.tasks.Wait()
}

// listen starts to accept connections at a port of the rank's address.
func (c *connections) listen(port uint16) {
	at := netip.AddrPortFrom(c.addresses[c.rank].Addr(), port)
	l, err := new(net.ListenConfig).Listen(c.ctx, "tcp", at.String())
	if err != nil {
		c.failure()
		c.log.Warn("TCP port of the role not opened", zap.Stringer("address", at), zap.Error(err))
		return
	}
	c.listeners = append(c.listeners, l)
	c.tasks.Go(func() { c.accept(l, port) })
}

// accept accepts connections until the listener is closed.
func (c *connections) accept(l net.Listener, port uint16) {
	stop := context.AfterFunc(c.ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.warn("TCP connection to the role not accepted", err, zap.Uint16("port", port))
			_ = sleep(c.ctx, acceptPause)
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		counter := &c.stats.Accepted
		if rank := c.rankAt(from.Addr()); rank < 0 {
			conn.Close()
			counter = &c.stats.Unknown
		} else if _, err := c.add(session{rank, from.Port(), port}, conn); err != nil {
			conn.Close()
			counter = &c.stats.Limit
		}
		c.mu.Lock()
		*counter++
		c.mu.Unlock()
	}
}

// rankAt returns the first other rank that has the given address, or -1.
func (c *connections) rankAt(a netip.Addr) int {
	for rank := range c.addresses {
		if rank != c.rank && c.addresses[rank].Addr().Unmap() == a.Unmap() {
			return rank
		}
	}
	return -1
}

// add starts to read from a connection. It returns an error if there are too many connections.
func (c *connections) add(s session, conn net.Conn) (*connection, error) {
	k := &connection{session: s, conn: conn, buf: make([]byte, cosim.MaxChunk), taken: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	if c.live == maxConnections {
		return nil, errConnections
	}
	c.live++
	c.open = append(c.open, k)
	c.tasks.Go(func() { c.read(k) })
	return k, nil
}

// read reads from a connection until the connection ends. After each chunk, it waits until the simulation has
// taken the chunk.
func (c *connections) read(k *connection) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.live--
		c.forget(k)
	}()
	for {
		n, err := k.conn.Read(k.buf)
		if n > 0 {
			k.chunk = k.buf[:n]
			select {
			case c.arrived <- k:
			case <-c.ctx.Done():
				return
			}
			select {
			case <-k.taken:
			case <-c.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// forget closes and removes a connection. The caller must hold c.mu.
func (c *connections) forget(k *connection) {
	k.conn.Close()
	c.open = slices.DeleteFunc(c.open, func(o *connection) bool { return o == k })
}

// next calls deliver with a received chunk. It reports whether there was one.
func (c *connections) next(deliver func(cosim.Datagram)) bool {
	select {
	case k := <-c.arrived:
		deliver(cosim.Datagram{Rank: k.rank, Port: k.port, Own: k.own, Bytes: k.chunk})
		k.taken <- struct{}{}
		return true
	default:
		return false
	}
}

// room returns the number of bytes that send can accept.
func (c *connections) room() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sendBuffer - len(c.queue.bytes)
}

// send queues chunks for writing. Their total length must not exceed room.
func (c *connections) send(chunks []cosim.Datagram) {
	if len(chunks) == 0 {
		return
	}
	c.mu.Lock()
	q := &c.queue
	for i := range chunks {
		d := &chunks[i]
		q.bytes = append(q.bytes, d.Bytes...)
		to := session{d.Rank, d.Port, d.Own}
		if n := len(q.segments); n > 0 && q.segments[n-1].session == to {
			q.segments[n-1].end = len(q.bytes)
		} else {
			q.segments = append(q.segments, segment{to, len(q.bytes)})
		}
	}
	c.mu.Unlock()
	c.signal()
}

// signal wakes up the writer.
func (c *connections) signal() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes the role's data in order. As in the shell, a stalled connection therefore delays all others.
func (c *connections) write() {
	defer close(c.flushed)
	var sending batch
	for {
		c.mu.Lock()
		sending, c.queue = c.queue, batch{sending.bytes[:0], sending.segments[:0]}
		ending := c.ending
		c.mu.Unlock()
		from := 0
		for _, s := range sending.segments {
			if err := c.writeTo(s.session, sending.bytes[from:s.end]); err != nil {
				c.lost(s, s.end-from, err)
			}
			from = s.end
		}
		if from > 0 {
			continue
		}
		if ending {
			return
		}
		select {
		case <-c.wake:
		case <-c.ctx.Done():
			return
		}
	}
}

// writeTo writes to the connection of a session, and opens the connection if necessary.
func (c *connections) writeTo(s session, b []byte) error {
	k := c.find(s)
	if k == nil {
		var err error
		if k, err = c.dial(s); err != nil {
			return err
		}
	}
	_, err := k.conn.Write(b)
	if err != nil {
		c.mu.Lock()
		c.forget(k)
		c.mu.Unlock()
	}
	return err
}

// find returns the oldest connection of a session, or nil.
func (c *connections) find(s session) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.open {
		if k.session == s {
			return k
		}
	}
	return nil
}

// dial opens a connection.
func (c *connections) dial(s session) (*connection, error) {
	d := net.Dialer{Timeout: connectWithin,
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.addresses[c.rank].Addr(), 0))}
	conn, err := d.DialContext(c.ctx, "tcp", netip.AddrPortFrom(c.addresses[s.rank].Addr(), s.port).String())
	if err != nil {
		return nil, err
	}
	k, err := c.add(s, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.mu.Lock()
	c.stats.Opened++
	c.mu.Unlock()
	return k, nil
}

// lost records that some bytes from the role could not be written.
func (c *connections) lost(s segment, bytes int, err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.stats.Failed++
	c.stats.Dropped += uint64(bytes)
	c.mu.Unlock()
	c.warn("chunk of the role not sent", err, zap.Int("to", s.rank), zap.Uint16("port", s.port))
}

// warn counts an error, and logs it unless it is the same as the last one.
func (c *connections) warn(what string, err error, fields ...zap.Field) {
	err = rlimit.Descriptor(err)
	c.mu.Lock()
	again := err.Error() == c.failed
	c.failed = err.Error()
	c.mu.Unlock()
	if !again {
		c.failure()
		c.log.Warn(what, append(fields, zap.Error(err))...)
	}
}

// Stats returns the counters of the connections.
func (c *connections) Stats() state.Connections {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Open = c.live
	return s
}

// beforeTCP delivers as many received chunks to the role as fit, and listens at the ports that the role has opened.
func (d *datagrams) beforeTCP() {
	if d.simulator.boundary != cosim.BoundaryTCP {
		return
	}
	if d.tcp == nil {
		d.tcp = newConnections(d.simulator.rank.Rank(), d.inbox.wire.Addresses(), d.log,
			func() { d.k.counters.errors.Add(1) })
		d.k.mu.Lock()
		d.k.tcp = d.tcp
		d.k.mu.Unlock()
	}
	room := d.tcp.room()
	d.k.mu.Lock()
	d.network.AllowTCP(room)
	opened := d.network.PortsTCP() &^ d.ports
	for d.network.RoomTCP() && d.tcp.next(d.network.DeliverTCP) {
	}
	d.k.mu.Unlock()
	d.ports |= opened
	for n := range uint16(32) {
		if opened>>n&1 == 1 {
			d.tcp.listen(protocol.Port + n)
		}
	}
}
