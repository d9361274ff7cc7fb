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

// Limits on a simulation's TCP connections. All but sendBuffer equal the limits of the deployed shell.
const (
	maxConnections = 8
	connectTimeout = time.Second
	// sendBuffer is the maximum number of bytes from the role that are queued for connections. The writer may be
	// writing another sendBuffer bytes at the same time.
	sendBuffer = 64 << 10
	// flushTimeout is the time limit for writing the role's remaining data at the end of a simulation.
	flushTimeout = time.Second
	// acceptPause is the pause after a connection could not be accepted, which usually means that the process has no
	// free file descriptors.
	acceptPause = 100 * time.Millisecond
)

// errConnections is returned when the maximum number of connections is already open.
var errConnections = errors.New("the shell supports only 8 connections")

// connectionKey identifies a connection in the same way as the shell.
type connectionKey struct {
	rank            int
	port, localPort uint16
}

// connection is a TCP connection with another rank.
type connection struct {
	connectionKey
	conn net.Conn
	// chunk is the part of buf that contains received data. The reader may overwrite buf once the channel consumed has
	// a value.
	buf, chunk []byte
	consumed   chan struct{}
}

// batch contains data from the role for one or more connections.
type batch struct {
	bytes    []byte
	segments []segment
}

// segment is the part of a batch that belongs to one connection. It ends before the byte of the batch at index end.
type segment struct {
	connectionKey
	end int
}

// connections manages the TCP connections of one run of a simulator. Only a single goroutine may call its methods.
type connections struct {
	rank         int
	addresses    []netip.AddrPort
	log          *zap.Logger
	countFailure func() // counts a failure

	ctx       context.Context
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	listeners []net.Listener
	received  chan *connection
	wake      chan struct{}
	flushed   chan struct{}

	mu         sync.Mutex
	open       []*connection
	numReaders int // number of connections with a reader
	queue      batch
	closing    bool
	stats      state.Connections
	lastError  string // the last logged error
}

// newConnections returns an empty set of connections for a rank. The caller must call close.
func newConnections(rank int, addresses []netip.AddrPort, log *zap.Logger, failure func()) *connections {
	c := &connections{
		rank: rank, addresses: addresses, log: log, countFailure: failure,
		received: make(chan *connection, maxConnections), wake: make(chan struct{}, 1), flushed: make(chan struct{}),
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
	c.tasks.Go(c.writeLoop)
	return c
}

// close closes all connections once the role's data has been written or flushTimeout has passed.
func (c *connections) close() {
	for _, l := range c.listeners {
		l.Close()
	}
	c.mu.Lock()
	c.closing = true
	c.mu.Unlock()
	c.wakeWriter()
	timer := time.NewTimer(flushTimeout)
	defer timer.Stop()
	select {
	case <-c.flushed:
	case <-timer.C:
	}
	c.cancel()
	c.tasks.Wait()
}

// listen starts to accept connections on a port of the rank's address.
func (c *connections) listen(port uint16) {
	at := netip.AddrPortFrom(c.addresses[c.rank].Addr(), port)
	l, err := new(net.ListenConfig).Listen(c.ctx, "tcp", at.String())
	if err != nil {
		c.countFailure()
		c.log.Warn("TCP port of the role not opened", zap.Stringer("address", at), zap.Error(err))
		return
	}
	c.listeners = append(c.listeners, l)
	c.tasks.Go(func() { c.acceptLoop(l, port) })
}

// acceptLoop accepts connections until the listener is closed.
func (c *connections) acceptLoop(l net.Listener, port uint16) {
	stop := context.AfterFunc(c.ctx, func() { l.Close() })
	defer stop()
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			c.warnOnce("TCP connection to the role not accepted", err, zap.Uint16("port", port))
			_ = sleep(c.ctx, acceptPause)
			continue
		}
		from := conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		counter := &c.stats.Accepted
		if rank := c.rankAt(from.Addr()); rank < 0 {
			conn.Close()
			counter = &c.stats.Unknown
		} else if _, err := c.addConnection(connectionKey{rank, from.Port(), port}, conn); err != nil {
			conn.Close()
			counter = &c.stats.Limit
		}
		c.mu.Lock()
		*counter++
		c.mu.Unlock()
	}
}

// rankAt returns the first other rank with the given address, or -1 if no rank has it.
func (c *connections) rankAt(a netip.Addr) int {
	for rank := range c.addresses {
		if rank != c.rank && c.addresses[rank].Addr().Unmap() == a.Unmap() {
			return rank
		}
	}
	return -1
}

// addConnection starts to read from a connection. It returns an error if the maximum number of connections is already
// open.
func (c *connections) addConnection(s connectionKey, conn net.Conn) (*connection, error) {
	k := &connection{connectionKey: s, conn: conn, buf: make([]byte, cosim.MaxChunk), consumed: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ctx.Err(); err != nil {
		return nil, err
	}
	if c.numReaders == maxConnections {
		return nil, errConnections
	}
	c.numReaders++
	c.open = append(c.open, k)
	c.tasks.Go(func() { c.readLoop(k) })
	return k, nil
}

// readLoop reads from a connection until the connection ends. After each chunk, it waits until the simulation has
// consumed the chunk.
func (c *connections) readLoop(k *connection) {
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.numReaders--
		c.removeConnection(k)
	}()
	for {
		n, err := k.conn.Read(k.buf)
		if n > 0 {
			k.chunk = k.buf[:n]
			select {
			case c.received <- k:
			case <-c.ctx.Done():
				return
			}
			select {
			case <-k.consumed:
			case <-c.ctx.Done():
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// removeConnection closes and removes a connection. The caller must hold c.mu.
func (c *connections) removeConnection(k *connection) {
	k.conn.Close()
	c.open = slices.DeleteFunc(c.open, func(o *connection) bool { return o == k })
}

// deliverNext passes a received chunk to the callback deliver. It reports whether a chunk was available.
func (c *connections) deliverNext(deliver func(cosim.Datagram)) bool {
	select {
	case k := <-c.received:
		deliver(cosim.Datagram{Rank: k.rank, Port: k.port, LocalPort: k.localPort, Bytes: k.chunk})
		k.consumed <- struct{}{}
		return true
	default:
		return false
	}
}

// sendCapacity returns the number of bytes that send can accept.
func (c *connections) sendCapacity() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return sendBuffer - len(c.queue.bytes)
}

// send queues chunks for writing. Their total length must not exceed sendCapacity.
func (c *connections) send(chunks []cosim.Datagram) {
	if len(chunks) == 0 {
		return
	}
	c.mu.Lock()
	q := &c.queue
	for i := range chunks {
		d := &chunks[i]
		q.bytes = append(q.bytes, d.Bytes...)
		to := connectionKey{d.Rank, d.Port, d.LocalPort}
		if n := len(q.segments); n > 0 && q.segments[n-1].connectionKey == to {
			q.segments[n-1].end = len(q.bytes)
		} else {
			q.segments = append(q.segments, segment{to, len(q.bytes)})
		}
	}
	c.mu.Unlock()
	c.wakeWriter()
}

// wakeWriter wakes up the writer.
func (c *connections) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// writeLoop writes the role's data in order. As in the shell, a stalled connection therefore delays all others.
func (c *connections) writeLoop() {
	defer close(c.flushed)
	var sending batch
	for {
		c.mu.Lock()
		sending, c.queue = c.queue, batch{sending.bytes[:0], sending.segments[:0]}
		ending := c.closing
		c.mu.Unlock()
		from := 0
		for _, s := range sending.segments {
			if err := c.writeTo(s.connectionKey, sending.bytes[from:s.end]); err != nil {
				c.recordLost(s, s.end-from, err)
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

// writeTo writes to the connection with key s. If there is none, writeTo opens it first.
func (c *connections) writeTo(s connectionKey, b []byte) error {
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
		c.removeConnection(k)
		c.mu.Unlock()
	}
	return err
}

// find returns the oldest connection with key s, or nil if none is open.
func (c *connections) find(s connectionKey) *connection {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.open {
		if k.connectionKey == s {
			return k
		}
	}
	return nil
}

// dial opens a connection.
func (c *connections) dial(key connectionKey) (*connection, error) {
	d := net.Dialer{Timeout: connectTimeout,
		LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(c.addresses[c.rank].Addr(), 0))}
	conn, err := d.DialContext(c.ctx, "tcp", netip.AddrPortFrom(c.addresses[key.rank].Addr(), key.port).String())
	if err != nil {
		return nil, err
	}
	k, err := c.addConnection(key, conn)
	if err != nil {
		conn.Close()
		return nil, err
	}
	c.mu.Lock()
	c.stats.Opened++
	c.mu.Unlock()
	return k, nil
}

// recordLost records that some bytes from the role could not be written.
func (c *connections) recordLost(s segment, bytes int, err error) {
	if c.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	c.stats.Failed++
	c.stats.Dropped += uint64(bytes)
	c.mu.Unlock()
	c.warnOnce("chunk of the role not sent", err, zap.Int("to", s.rank), zap.Uint16("port", s.port))
}

// warnOnce counts and logs an error, unless its text equals that of the previous error.
func (c *connections) warnOnce(what string, err error, fields ...zap.Field) {
	err = rlimit.Descriptor(err)
	c.mu.Lock()
	again := err.Error() == c.lastError
	c.lastError = err.Error()
	c.mu.Unlock()
	if !again {
		c.countFailure()
		c.log.Warn(what, append(fields, zap.Error(err))...)
	}
}

// Stats returns the counters of the connections.
func (c *connections) Stats() state.Connections {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Open = c.numReaders
	return s
}

// deliverTCP delivers received chunks to the role until its FIFO is full, and listens on the ports opened by the role.
func (d *datagramExchange) deliverTCP() {
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
	room := d.tcp.sendCapacity()
	d.k.mu.Lock()
	d.network.SetTCPCapacity(room)
	opened := d.network.PortsTCP() &^ d.ports
	for d.network.HasSpaceTCP() && d.tcp.deliverNext(d.network.DeliverTCP) {
	}
	d.k.mu.Unlock()
	d.ports |= opened
	for n := range uint16(32) {
		if opened>>n&1 == 1 {
			d.tcp.listen(protocol.Port + n)
		}
	}
}
