package integration_test

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// farEnds is a set of ranks of the extended profile that echo every message. Each rank has a socket and a state
// machine, and all ranks share a few goroutines.
type farEnds struct {
	t     testing.TB
	ends  []*farEnd
	epoch time.Time
	stop  atomic.Bool
	all   sync.WaitGroup
	// retransmissions and losses are set by close.
	retransmissions, losses uint64
}

// farEnd is one of the ranks.
type farEnd struct {
	fd   int
	conn *extended.Conn
	acts []extended.Action
	// ins are incoming messages, outs the echoes, by message ID.
	ins, outs map[uint64]*farMessage
	lastID    uint64
	spare     []*farMessage
	packet    []byte
}

type farMessage struct {
	buf       []byte
	comm, tag uint32
	datatype  protocol.Datatype
}

// newFarEnds binds n ranks, starting with rank first, each to a separate address and a free port. It returns their
// addresses in the order of ranks.
func newFarEnds(t testing.TB, net byte, first, n int, cfg extended.Config) (*farEnds, []netip.AddrPort) {
	t.Helper()
	f := &farEnds{t: t, epoch: time.Now()}
	var addrs []netip.AddrPort
	for i := range n {
		fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatalf("socket %d: %v", i, err)
		}
		t.Cleanup(func() { unix.Close(fd) })
		if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, net, byte(1 + i/250),
			byte(1 + i%250)}}); err != nil {
			t.Fatal(err)
		}
		sa, err := unix.Getsockname(fd)
		if err != nil {
			t.Fatal(err)
		}
		in4 := sa.(*unix.SockaddrInet4)
		addrs = append(addrs, netip.AddrPortFrom(netip.AddrFrom4(in4.Addr), uint16(in4.Port)))
		mine := cfg
		mine.Local, mine.Remote, mine.Seed = uint32(first+i), 0, uint64(1000+i)
		f.ends = append(f.ends, &farEnd{
			fd: fd, conn: extended.New(mine), ins: map[uint64]*farMessage{}, outs: map[uint64]*farMessage{},
			packet: make([]byte, protocol.MaxDatagram),
		})
	}
	return f, addrs
}

// start connects the ranks to rank 0 and serves them with the given number of goroutines.
func (f *farEnds) start(to netip.AddrPort, goroutines int) {
	for _, e := range f.ends {
		if err := unix.Connect(e.fd, &unix.SockaddrInet4{Addr: to.Addr().As4(), Port: int(to.Port())}); err != nil {
			f.t.Fatal(err)
		}
	}
	for i := range goroutines {
		from, end := i*len(f.ends)/goroutines, (i+1)*len(f.ends)/goroutines
		f.all.Go(func() { f.serve(f.ends[from:end]) })
	}
}

// close stops the goroutines. Messages may still be in flight.
func (f *farEnds) close() {
	f.stop.Store(true)
	f.all.Wait()
	for _, e := range f.ends {
		s := e.conn.Stats()
		f.retransmissions += s.Retransmissions
		f.losses += s.Losses
	}
}

func (f *farEnds) now() extended.Instant { return time.Since(f.epoch) }

// serve receives the packets of some of the ranks.
func (f *farEnds) serve(ends []*farEnd) {
	epfd, err := unix.EpollCreate1(unix.EPOLL_CLOEXEC)
	if err != nil {
		f.t.Error(err)
		return
	}
	defer unix.Close(epfd)
	for i, e := range ends {
		if err := unix.EpollCtl(epfd, unix.EPOLL_CTL_ADD, e.fd,
			&unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(i)}); err != nil {
			f.t.Error(err)
			return
		}
	}
	events := make([]unix.EpollEvent, 64)
	buf := make([]byte, 1<<16)
	var ticked extended.Instant
	for !f.stop.Load() {
		n, err := unix.EpollWait(epfd, events, 1)
		if err != nil && err != unix.EINTR {
			f.t.Error(err)
			return
		}
		for _, ev := range events[:max(n, 0)] {
			f.receive(ends[ev.Fd], buf)
		}
		now := f.now()
		if now-ticked < time.Millisecond {
			continue
		}
		ticked = now
		for _, e := range ends {
			if at, ok := e.conn.Deadline(); ok && at <= now {
				e.acts = e.conn.Tick(now, e.acts)
				f.flush(e, now)
			}
		}
	}
}

// receive receives the pending packets of a rank.
func (f *farEnds) receive(e *farEnd, buf []byte) {
	now := f.now()
	for range 64 {
		n, err := unix.Read(e.fd, buf)
		if err != nil {
			break
		}
		e.acts = e.conn.Packet(now, buf[:n], e.acts)
		f.do(e, now)
	}
	f.flush(e, now)
}

func (f *farEnds) flush(e *farEnd, now extended.Instant) {
	f.do(e, now)
	e.acts = e.conn.Flush(now, e.acts)
	f.do(e, now)
}

// do performs the actions of a rank.
func (f *farEnds) do(e *farEnd, now extended.Instant) {
	for i := 0; i < len(e.acts); i++ {
		a := e.acts[i]
		switch a.Kind {
		case extended.Transmit, extended.TransmitAck:
			payload := a.Payload
			if a.Length > 0 {
				payload = e.outs[uint64(a.ID)].buf[a.Offset : a.Offset+a.Length]
			}
			p := append(e.packet[:protocol.ExtHeaderLen], payload...)
			protocol.PutExtended(p, &a.Header, payload)
			_, _ = unix.Write(e.fd, p) // packets that cannot be sent are lost, and retransmitted
		case extended.Open:
			m := e.message(a.Length)
			m.comm, m.tag, m.datatype = a.Comm, a.Tag, a.Datatype
			e.ins[uint64(a.Message)] = m
			e.acts = e.conn.Accept(now, a.Message, a.Length, e.acts)
		case extended.Copy:
			copy(e.ins[uint64(a.Message)].buf[a.Offset:], a.Payload)
		case extended.Arrived:
			m := e.ins[uint64(a.Message)]
			delete(e.ins, uint64(a.Message))
			e.lastID++
			e.outs[e.lastID] = m
			e.acts = e.conn.Send(now, extended.SendOp{
				ID: extended.ID(e.lastID), Length: int64(len(m.buf)), Comm: m.comm, Tag: m.tag, Datatype: m.datatype,
			}, e.acts)
		case extended.SendDone:
			if a.Err != nil {
				f.t.Errorf("rank %d cannot send a message back: %v", e.conn.Config().Local, a.Err)
			}
			e.spare = append(e.spare, e.outs[uint64(a.ID)])
			delete(e.outs, uint64(a.ID))
		case extended.Lost:
			f.t.Errorf("rank %d has lost a message: %v", e.conn.Config().Local, a.Err)
		}
	}
	e.acts = e.acts[:0]
}

// message returns a message with a buffer of n bytes.
func (e *farEnd) message(n int64) *farMessage {
	for i, m := range e.spare {
		if int64(cap(m.buf)) >= n {
			last := len(e.spare) - 1
			e.spare[i] = e.spare[last]
			e.spare = e.spare[:last]
			m.buf = m.buf[:n]
			return m
		}
	}
	return &farMessage{buf: make([]byte, n)}
}
