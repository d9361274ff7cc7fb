package shm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
	"github.com/zrlmpi/zrlmpid/internal/sharedmem"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/transport/rankmap"
)

// Conn holds the links and the shared memory of one rank. It implements mpe.MemoryTransport and mpe.PollTransport.
type Conn struct {
	cfg       Config
	localAddr netip.AddrPort
	// sockets is the directory in which the peers find the socket of ln.
	sockets *socketDir
	ln      *net.UnixListener
	// peers is indexed by rank. The entry of a rank that is not a peer is nil.
	peers []*peer
	// doorbellFD is the file descriptor of the memory that holds our doorbell. The peers map this memory.
	doorbellFD int
	// shared holds the shared buffers of all ranks.
	shared *sharedBuffers
	// nonce is a number in our memory. A peer that can read it knows that it can read our memory.
	nonce *nonce
	// linksChanged is set if Poll must check newLinks and unlinked as well as the rings.
	linksChanged atomic.Bool
	closed       atomic.Bool

	mu sync.Mutex
	// newLinks holds the links that Poll has not seen yet, oldest first.
	newLinks []*link
	// unlinked holds events that Poll has not seen yet and that concern peers without a link.
	unlinked []unlinkedEvent
	// reserve is a spare file descriptor for the case that the process has run out of descriptors.
	reserve rlimit.Reserve

	inbox *inbox

	// ctx is canceled when the Conn is closed; tasks tracks its goroutines.
	ctx    context.Context
	cancel context.CancelFunc
	tasks  sync.WaitGroup
}

var (
	_ mpe.MemoryTransport = (*Conn)(nil)
	_ mpe.PollTransport   = (*Conn)(nil)
)

// Listen makes the rank known to the other ranks on this host, and starts to call the higher ones. It returns a
// *ListenError if another process already runs the rank, or if the system does not allow shared memory.
func Listen(cfg Config) (*Conn, error) {
	if cfg.Map == nil || !cfg.Map.Has(cfg.Rank) {
		return nil, fmt.Errorf("shm: rank %d is not in the rank map", cfg.Rank)
	}
	if cfg.Ring == 0 {
		cfg.Ring = DefaultRing(cfg.Map.Size())
	}
	if !isRingSize(cfg.Ring) {
		return nil, fmt.Errorf("shm: a ring of %d bytes: must be a power of two from %d to %d, or 0", cfg.Ring, MinRing,
			MaxRing)
	}
	if err := cfg.applyEnv(); err != nil {
		return nil, err
	}
	addr := cfg.Map.Addr(cfg.Rank)
	place, ln, err := bindSocket(&cfg)
	if err != nil {
		return nil, listenError(cfg.Rank, addr, err)
	}
	conn := &Conn{cfg: cfg, localAddr: addr, sockets: place, ln: ln, nonce: newNonce(),
		peers: make([]*peer, cfg.Map.Size())}
	if conn.shared, err = newSharedBuffers(cfg.Map.Size()); err == nil {
		if err = conn.openDoorbell(); err != nil {
			unix.Close(conn.shared.fd)
			conn.shared.free()
		}
	}
	if err != nil {
		place.detach()
		ln.Close()
		place.dir.Close()
		return nil, &ListenError{Rank: cfg.Rank, Addr: addr, Err: err}
	}
	conn.ctx, conn.cancel = context.WithCancel(context.Background())
	for rank := range conn.peers {
		if rank != cfg.Rank && cfg.Map.Kind(rank) == rankmap.Software {
			conn.peers[rank] = &peer{rank: rank, addr: cfg.Map.Addr(rank), callRequested: make(chan struct{}, 1)}
		}
	}
	conn.reserve.Open()
	conn.tasks.Go(conn.acceptAll)
	for rank, p := range conn.peers {
		switch {
		case p == nil:
		case rank > cfg.Rank:
			conn.tasks.Go(func() { conn.keepDialing(p) })
		default:
			conn.tasks.Go(func() { _ = conn.requestCall(p) }) // p calls us when it starts
		}
	}
	// The last batch may still be in use when the Conn is closed.
	runtime.AddCleanup(conn, (*inbox).free, conn.inbox)
	return conn, nil
}

// openDoorbell creates our own doorbell and the inbox.
func (c *Conn) openDoorbell() (err error) {
	if c.doorbellFD, err = sharedmem.Create(doorbellLen); err != nil {
		return err
	}
	page, err := sharedmem.Map(c.doorbellFD, doorbellLen)
	if err == nil {
		var bell int
		if bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err == nil {
			c.inbox = &inbox{doorbell: doorbell{page: page, eventFD: bell}, maxBytes: maxPollBytes(c.cfg.Ring), shared: c.shared}
			return nil
		}
	}
	sharedmem.Unmap(page)
	unix.Close(c.doorbellFD)
	return err
}

// listenError returns the error of a failed Listen. It names the process that runs the rank, if known.
func listenError(rank int, addr netip.AddrPort, err error) *ListenError {
	e := &ListenError{Rank: rank, Addr: addr, Err: err}
	var taken *rendezvous.TakenError
	if e.Taken = errors.As(err, &taken); e.Taken && taken.PID != 0 {
		e.PID, e.Name = taken.PID, "?"
		if name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", e.PID)); err == nil {
			e.Name = strings.TrimSpace(string(name))
		}
	}
	return e
}

// LocalAddr returns the address by which the rank is known.
func (c *Conn) LocalAddr() netip.AddrPort { return c.localAddr }

// Reliable returns true: no packet accepted by SendPackets is lost as long as its link exists.
func (c *Conn) Reliable() bool { return true }

// Close ends all links, and returns when all goroutines of the Conn have exited, except one blocked on a peer's memory.
// The peers can still read the packets in the rings. The next Poll or Recv, which returns mpe.ErrTransportClosed,
// releases the memory; otherwise the memory is released when the Conn becomes unreachable.
func (c *Conn) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.cancel()
	c.sockets.detach()
	c.ln.Close()
	for _, p := range c.peers {
		if p != nil {
			p.mu.Lock()
			l := p.link
			p.mu.Unlock()
			if l != nil {
				_ = sendMessage(l.conn, closing, nil) // fails if the peer is gone
				l.end(mpe.ErrTransportClosed)
			}
			p.copier.stop(mpe.ErrTransportClosed)
		}
	}
	c.tasks.Wait()
	c.sockets.dir.Close()
	c.reserve.Close()
	unix.Close(c.doorbellFD)
	unix.Close(c.shared.fd)
	c.mu.Lock()
	for _, l := range c.newLinks {
		l.free()
	}
	c.newLinks = nil
	c.mu.Unlock()
	c.notifyPoll()
	return nil
}

// closing is the message that a closed Conn sends over the socket of each link.
var closing = []byte{0}

// notifyPoll makes Poll check for new links and events.
func (c *Conn) notifyPoll() {
	c.linksChanged.Store(true)
	c.inbox.mu.Lock()
	defer c.inbox.mu.Unlock()
	switch {
	case c.inbox.freed:
	case c.closed.Load():
		c.inbox.doorbell.ring() // wakes all waiters, now and later
	default:
		c.inbox.doorbell.wake()
	}
}
