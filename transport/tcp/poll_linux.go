package tcp

import (
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// hasPoll says that the system has what an inbox takes.
const hasPoll = true

const (
	// nearLinks is how many links there are at most for every poll to read from
	// all of them. Where there are more, it reads from the one that something came
	// by last, and asks the epoll instance about the others: a poll costs the
	// same however many ranks there are.
	nearLinks = 2
	// nearStreak is how many polls in a row may find something at the nearest
	// link until the others are asked about.
	nearStreak = 8
	// readyLinks is how many links that have something the epoll instance reports
	// of at a time.
	readyLinks = 32
	// bellID is the bell's number in the epoll instance, where links have their
	// peer's rank.
	bellID = -1
)

// inbox is what a goroutine that waits for packets polls.
type inbox struct {
	c            *Conn
	writeTimeout time.Duration
	// epfd is an epoll instance that becomes readable when something arrives, and
	// bell an eventfd in it for what comes by no wire.
	epfd, bell int
	// asking is how many links wait until the kernel has room.
	asking atomic.Int32
	// closed says that nothing more arrives.
	closed atomic.Bool
	ending sync.Once
	// waiting is held by Recv while it waits for the epoll instance.
	waiting sync.Mutex

	// fresh are links that nothing is read from yet, at most one of each peer, and
	// linksChanged says that there may be some, or that something else is to be seen to.
	freshMu      sync.Mutex
	fresh        []*link
	linksChanged atomic.Bool

	// mu is held by Poll, Sleep and Close, for what follows.
	mu sync.Mutex
	// links are those that are read from, and at says which is a rank's.
	links []*link
	at    []*link
	// near is the link that something came by last, streak how often in a row,
	// and rotation which one is the first to be read from of those that are examined.
	near             *link
	streak, rotation int
	// held is a link of which not all was given out that was read.
	held *link
	// placements are those of the poll at hand, or nil.
	placements *mpe.Placements
	// ended are links by which nothing more comes.
	ended  []*link
	events [readyLinks]unix.EpollEvent
}

func newInbox(c *Conn) (*inbox, error) {
	in := &inbox{c: c, writeTimeout: c.cfg.WriteTimeout, at: make([]*link, len(c.peers))}
	var err error
	if in.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, os.NewSyscallError("epoll_create1", err)
	}
	if in.bell, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		unix.Close(in.epfd)
		return nil, os.NewSyscallError("eventfd", err)
	}
	if err = unix.EpollCtl(in.epfd, unix.EPOLL_CTL_ADD, in.bell, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: bellID}); err != nil {
		unix.Close(in.bell)
		unix.Close(in.epfd)
		return nil, os.NewSyscallError("epoll_ctl", err)
	}
	return in, nil
}

// CanPoll reports whether waiting goroutines can poll for packets: all
// peers are of the extended profile, without TLS, and the system is Linux.
func (c *Conn) CanPoll() bool { return c.inbox != nil }

// Poll is Recv, but returns 0 if nothing has arrived.
func (c *Conn) Poll(batch []mpe.RxPacket, at *mpe.Placements) (int, error) {
	in := c.inbox
	if in.closed.Load() { // Close may take its time
		return 0, mpe.ErrTransportClosed
	}
	n := 0
	in.mu.Lock()
	if len(batch) > 0 && !in.closed.Load() {
		in.placements = at
		n = in.poll(batch)
		in.placements = nil
	}
	in.mu.Unlock() // not by defer: most polls find nothing, and this is all they do
	return n, nil
}

func (in *inbox) poll(batch []mpe.RxPacket) (n int) {
	// What was given out may be overwritten now, but not what this poll gives out.
	if l := in.held; l != nil {
		in.held = nil
		if n = in.hand(l, batch); n > 0 {
			in.sweep()
			return n
		}
	}
	if in.linksChanged.Load() {
		if n = in.reportChanges(batch); n > 0 {
			return n
		}
	}
	if len(in.links) <= nearLinks && in.asking.Load() == 0 {
		n = in.readAll(batch)
	} else {
		n = in.readReady(batch)
	}
	in.sweep()
	return n
}

// readAll examines all links.
func (in *inbox) readAll(batch []mpe.RxPacket) (n int) {
	if in.rotation++; in.rotation >= len(in.links) {
		in.rotation = 0
	}
	for i := range in.links {
		if n == len(batch) {
			break
		}
		if i += in.rotation; i >= len(in.links) {
			i -= len(in.links)
		}
		n += in.read(in.links[i], batch[n:])
	}
	return n
}

// readReady examines the nearest link, and otherwise those that have something.
func (in *inbox) readReady(batch []mpe.RxPacket) (n int) {
	if in.near != nil && in.streak < nearStreak {
		if n = in.read(in.near, batch); n > 0 {
			in.streak++
			return n
		}
	}
	in.streak = 0
	ready, err := unix.EpollWait(in.epfd, in.events[:], 0)
	if err != nil {
		return 0 // EINTR
	}
	// The epoll instance reports the links in the same order again while they have
	// something, and the first one may fill the batch.
	in.rotation++
	for i := range ready {
		ev := &in.events[(i+in.rotation)%ready]
		if ev.Fd == bellID {
			continue // its changes were handled before
		}
		l := in.at[ev.Fd]
		if ev.Events&unix.EPOLLOUT != 0 {
			in.goOn(l)
		}
		if ev.Events&^unix.EPOLLOUT == 0 || n == len(batch) {
			continue // the epoll instance will report it again
		}
		if got := in.read(l, batch[n:]); got > 0 {
			n += got
			in.near = l
		}
	}
	return n
}

// goOn writes what waits.
func (in *inbox) goOn(l *link) {
	w := l.wire
	w.mu.Lock()
	var err error
	if !w.out.last {
		err = in.flush(l)
	}
	w.mu.Unlock()
	if err != nil {
		l.close(err)
	}
}

// read reads what has come by a link.
func (in *inbox) read(l *link, batch []mpe.RxPacket) int {
	w := l.wire
	if w.ended {
		return 0
	}
	var taken int // of the batch
	var n int
	var errno unix.Errno
	if at := in.placement(l); at != nil {
		taken, n, errno = w.direct.read(w, at, batch)
		for i := range batch[:taken] {
			batch[i].Peer, batch[i].From = l.peer.rank, l.from
		}
	} else {
		n, errno = w.read()
	}
	switch {
	case errno == unix.EAGAIN || errno == unix.EINTR:
		return 0
	case errno != 0:
		in.end(l, os.NewSyscallError("recvfrom", errno))
		return 0
	case n == 0:
		in.end(l, errPeerClosed)
		return 0
	}
	return taken + in.hand(l, batch[taken:])
}

// placement returns the one that the next packet of a link may be for, or nil. The rest of a packet whose place is not there any longer
// is left out.
func (in *inbox) placement(l *link) *mpe.Placement {
	var at *mpe.Placement
	if in.placements != nil {
		at = in.placements.Of(l.peer.rank)
	}
	if w := l.wire; w.direct.begun > 0 {
		if at == nil || !w.direct.continues(at) {
			w.direct.leaveOut(&w.in)
			return nil
		}
	} else if at == nil || w.in.skip > 0 || !w.in.continues(at) {
		return nil
	}
	return at
}

// hand gives out what was read.
func (in *inbox) hand(l *link, batch []mpe.RxPacket) (n int) {
	w := l.wire
	if w.ended {
		return 0
	}
	if !l.begun && w.in.unread() > 0 {
		l.begun = true
		if isTLSRecord(w.in.first()) {
			return in.broken(l, batch, &TLSError{Addr: l.from, Err: errSpeaksTLS})
		}
	}
	for n < len(batch) {
		packet, err := w.in.next()
		if err != nil {
			return n + in.broken(l, batch[n:], err)
		}
		if packet == nil {
			break
		}
		batch[n] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: l.peer.rank, From: l.from, Bytes: packet, Checked: true}
		n++
	}
	if n > 0 && !w.worked.Load() {
		w.worked.Store(true)
	}
	if n == len(batch) && w.in.hasHeader() {
		in.held = l
	}
	return n
}

// broken ends a link that is invalid.
func (in *inbox) broken(l *link, batch []mpe.RxPacket, err error) int {
	in.end(l, err)
	batch[0] = mpe.RxPacket{Kind: mpe.RxBroken, Peer: l.peer.rank, From: l.from}
	return 1
}
