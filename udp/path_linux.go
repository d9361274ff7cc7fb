package udp

import (
	"cmp"
	"errors"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

const (
	// bypassPolls is the number of consecutive polls that find nothing on the path, after which the next poll also asks
	// the kernel's socket. Datagrams in fragments, or through another device, arrive there without a notice.
	bypassPolls = 64
	// bypassSpins is the number of polls during which a datagram that the path did not take is expected. The kernel may
	// also drop it.
	bypassSpins = 1000
	// pathBurst is the maximum number of datagrams to a peer, sent at once, that use the path. For more, the kernel's
	// segmentation is faster.
	pathBurst = 8
	// drainTimeout limits the wait for the device to send staged datagrams.
	drainTimeout = 10 * time.Millisecond
	// flushInterval is the interval at which staged datagrams are offered to a busy device.
	flushInterval = 200 * time.Microsecond
)

// pathSocket is a socket that sends and receives by a Path where possible, and by the kernel's socket otherwise.
type pathSocket struct {
	*mmsgSocket
	path Path
	uses func(peer int) bool // Config.UsesPath
	// epoll is readable while awake, an event counter, is not 0, and if watched is set, while the path or the kernel's
	// socket has a datagram. pathRecvMu guards watched: while it is set, every datagram costs its sender 0.2 µs more.
	epoll, awake int
	watched      bool

	// pathSendMu is held while the path is used to send, and pathRecvMu while it is used to receive. close acquires both.
	// Neither is held while the kernel's socket may wait.
	pathSendMu, pathRecvMu sync.Mutex
	pathClosed             atomic.Bool
	// retry sends the datagrams that stay staged because the device is busy. pathSendMu guards it.
	retry *time.Timer
	// ways contains, for each peer, the way of its last datagram. messageByPath is set for each peer if the path carried
	// the beginning of the last message in several datagrams.
	ways          []way
	messageByPath []bool
	// kernelPeers is the number of peers in ways with byKernel. They probably answer through the kernel's socket, too.
	kernelPeers atomic.Int32
	long        atomic.Uint64 // state.Path.Long
	// received[next:count] are the datagrams of the path that have not been returned.
	received    [ringLen]Datagram
	next, count int
	// held are datagrams of the kernel's socket that must be returned after datagrams of the path. heldBytes is their
	// memory.
	held      []incoming
	heldBytes []byte
	// passed is the number of bypassed datagrams that have been returned, or have been dropped by the kernel.
	passed uint64
	// emptyPolls is the number of consecutive polls that found nothing on the path. bypassed is the last value of
	// Path.Bypassed, and spins the number of polls for which the kernel's socket is still asked every time.
	emptyPolls, spins int
	bypassed          uint64
}

// way is the way of a datagram to a peer.
type way uint8

const (
	unsent way = iota // there was none
	byPath
	byKernel
)

// openPathSocket implements opener for a Config with OpenPath.
func openPathSocket(conn *net.UDPConn, peers []netip.AddrPort, cfg *Config) (socket, error) {
	path, err := cfg.OpenPath(conn.LocalAddr().(*net.UDPAddr).AddrPort(), peers)
	if err != nil {
		return nil, err
	}
	inner, err := newSocket(conn, peers, cfg)
	m, ok := inner.(*mmsgSocket)
	if err == nil && !ok {
		err = errors.New("the path needs sendmmsg, which this system refuses")
	}
	if err != nil {
		path.Close()
		return nil, err
	}
	m.in.oneByOne = true
	switch path.Coalescing() {
	case CoalesceNever:
		m.in.groFixed = true
	case CoalesceAlways:
		m.in.groFixed = true
		if err = m.makeSlots(true); err == nil {
			if m.setGRO(true); !m.in.groEnabled {
				err = errors.New("the path needs UDP_GRO, which this system does not support")
			}
		}
		if err != nil {
			path.Close()
			_ = m.close() // the first error counts
			return nil, err
		}
	}
	s := &pathSocket{mmsgSocket: m, path: path, uses: cfg.UsesPath, epoll: -1, awake: -1, ways: make([]way, len(peers)),
		messageByPath: make([]bool, len(peers))}
	s.retry = time.AfterFunc(time.Hour, s.flushLater)
	s.retry.Stop()
	if err := s.openEpoll(); err != nil {
		_ = s.close() // the first error counts
		return nil, err
	}
	return s, nil
}

// openEpoll opens epoll and awake, and watches all descriptors.
func (s *pathSocket) openEpoll() (err error) {
	if s.epoll, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return err
	}
	if s.awake, err = unix.Eventfd(0, unix.EFD_CLOEXEC); err != nil {
		return err
	}
	event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.awake)}
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, s.awake, &event); err != nil {
		return err
	}
	return s.watch(true)
}

// watch sets watched. The caller holds pathRecvMu, or is the only user of the socket.
func (s *pathSocket) watch(on bool) error {
	if s.watched == on {
		return nil
	}
	s.watched = on
	op := unix.EPOLL_CTL_DEL
	if on {
		op = unix.EPOLL_CTL_ADD
	}
	for _, fd := range append(s.path.Descriptors(), s.fd) {
		event := unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(fd)}
		if err := unix.EpollCtl(s.epoll, op, fd, &event); err != nil {
			return err
		}
	}
	return nil
}

func (s *pathSocket) resolve(peers []netip.AddrPort) (func(), error) {
	move, err := s.mmsgSocket.resolve(peers)
	if err != nil {
		return nil, err
	}
	return func() {
		move()
		s.path.Move(peers)
	}, nil
}

// send implements socket. mayWait applies only to the datagrams that the kernel's socket sends.
func (s *pathSocket) send(out []outgoing, mayWait bool) (int, error) {
	n, rest, err := s.sendByPath(out)
	if len(rest) == 0 || err != nil {
		return n, err
	}
	others, err := s.mmsgSocket.send(rest, mayWait)
	return n + others, err
}

// sendByPath sends datagrams to a peer by the path. It returns their number, and the ones that the kernel's socket
// must send.
func (s *pathSocket) sendByPath(out []outgoing) (n int, rest []outgoing, err error) {
	s.pathSendMu.Lock()
	defer s.pathSendMu.Unlock()
	if s.pathClosed.Load() {
		return 0, nil, net.ErrClosed
	}
	peer := out[0].peer
	usesPath := s.choose(out)
	if usesPath && s.ways[peer] != byPath && s.mmsgSocket.hasUnsent() {
		usesPath = false // it would overtake
		if out[0].position != onlyDatagram {
			s.messageByPath[peer] = false
		}
	}
	if !usesPath {
		if s.ways[peer] == byPath {
			if err := s.drain(); err != nil {
				return 0, nil, err
			}
		}
		s.setWay(peer, byKernel)
		return 0, out, nil
	}
	s.setWay(peer, byPath)
	for n < len(out) && s.path.Stage(peer, &out[n].parts) {
		n++
	}
	switch err = s.path.Flush(); {
	case err == nil && n > 0:
		return n, nil, nil
	case err == nil || n == 0 && isFull(err):
		return 0, nil, unix.ENOBUFS
	case isFull(err):
		s.retry.Reset(flushInterval)
		return n, nil, nil
	}
	// The device is down or has been removed. The kernel may have another route, and otherwise reports an error.
	n -= min(n, s.path.Discard())
	s.setWay(peer, byKernel)
	s.messageByPath[peer] = false
	return n, out[n:], nil
}

// setWay sets the way of the last datagram to a peer.
func (s *pathSocket) setWay(peer int, w way) {
	if s.ways[peer] == w {
		return
	}
	if w == byKernel {
		s.kernelPeers.Add(1)
	} else if s.ways[peer] == byKernel {
		s.kernelPeers.Add(-1)
	}
	s.ways[peer] = w
}

// hasUnsent reports whether datagrams that the socket has accepted still wait for the device.
func (s *mmsgSocket) hasUnsent() bool {
	s.descriptor.sendMu.Lock()
	defer s.descriptor.sendMu.Unlock()
	if s.closed.Load() {
		return false
	}
	n, err := unix.IoctlGetInt(s.fd, unix.SIOCOUTQ)
	return err == nil && n > 0
}

// flushLater sends the datagrams that stay staged because the device was busy.
func (s *pathSocket) flushLater() {
	s.pathSendMu.Lock()
	defer s.pathSendMu.Unlock()
	if s.pathClosed.Load() {
		return
	}
	switch err := s.path.Flush(); {
	case isFull(err):
		s.retry.Reset(flushInterval)
	case err != nil:
		s.path.Discard()
	}
}

// choose reports whether datagrams to a peer are sent by the path. All datagrams of a message take the same way, so
// that they stay in order; if the path can no longer carry them, the rest takes the other way.
func (s *pathSocket) choose(out []outgoing) bool {
	peer, longest := out[0].peer, 0
	for i := range out {
		longest = max(longest, out[i].len())
	}
	if out[0].mode == sendFragments || s.uses != nil && !s.uses(peer) || !s.path.Carries(peer, longest) {
		if out[0].position != onlyDatagram {
			s.messageByPath[peer] = false
		}
		return false
	}
	usesPath := len(out) <= pathBurst || !s.segments(peer)
	switch out[0].position {
	case firstOfMessage:
		s.messageByPath[peer] = usesPath
	case laterInMessage:
		usesPath = s.messageByPath[peer]
	}
	if !usesPath {
		s.long.Add(uint64(len(out)))
	}
	return usesPath
}

// drain waits until the device has taken all staged datagrams, so that datagrams from the kernel's socket do not
// overtake them. If the device fails, it drops them.
func (s *pathSocket) drain() error {
	for start := time.Now(); ; pause(time.Microsecond) {
		switch err := s.path.Flush(); {
		case err == nil:
			return nil
		case !isFull(err):
			s.path.Discard()
			return nil
		case time.Since(start) > drainTimeout:
			return unix.ENOBUFS
		}
	}
}

func (s *pathSocket) poll(in []incoming) (int, error) {
	return s.pollBoth(in, func() (int, error) { return s.mmsgSocket.poll(in) })
}

func (s *pathSocket) pollInto(in []incoming, head int, buf []byte) (int, error) {
	return s.pollBoth(in, func() (int, error) { return s.mmsgSocket.pollInto(in, head, buf) })
}

// peek implements socket. It reports only datagrams of the kernel's socket, because datagrams of the path are in the
// process's memory already.
func (s *pathSocket) peek(head []byte) (int, netip.AddrPort, error) {
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	if s.pathClosed.Load() {
		return 0, netip.AddrPort{}, net.ErrClosed
	}
	if !s.asksKernel() {
		return 0, netip.AddrPort{}, nil
	}
	n, from, err := s.mmsgSocket.peek(head)
	if from.IsValid() {
		s.spins = bypassSpins // the next poll receives it
	}
	return n, from, err
}

// pollBoth returns datagrams of the path, or of the kernel's socket, which the function kernel polls. A Path counts the
// datagrams that it does not take, so that the order of arrival is known.
func (s *pathSocket) pollBoth(in []incoming, kernel func() (int, error)) (int, error) {
	s.pathRecvMu.Lock()
	n, err := s.pollLocked(in, kernel)
	s.pathRecvMu.Unlock() // not deferred: that would lengthen a poll
	return n, err
}

// pollLocked implements pollBoth. The caller holds pathRecvMu.
func (s *pathSocket) pollLocked(in []incoming, kernel func() (int, error)) (int, error) {
	if s.pathClosed.Load() {
		return 0, net.ErrClosed
	}
	s.receive()
	if n := s.deliver(in); n > 0 {
		return n, nil
	}
	if len(s.held) > 0 {
		return s.deliverHeld(in), nil
	}
	waiting := s.next < s.count // for bypassed datagrams
	if !waiting && !s.asksKernel() {
		return 0, nil
	}
	isNew := s.mmsgSocket.isDrained()
	n, err := kernel()
	if err != nil {
		return 0, err
	}
	if n == 0 {
		if !waiting {
			return 0, nil
		}
		s.passed = s.received[s.next].After // the kernel has dropped the datagrams before
		return s.deliver(in), nil
	}
	s.spins = bypassSpins // the peer probably sends more
	if isNew && !waiting {
		// The path may have received an earlier datagram in the meantime.
		s.held = append(s.held, in[:n]...)
		s.receive()
		if first := s.deliver(in); first > 0 {
			s.detachHeld()
			return first, nil
		}
		return s.deliverHeld(in), nil
	}
	s.pass()
	return n, nil
}

// detachHeld copies the datagrams in held to heldBytes. Their memory may be the caller's, who uses it for the
// datagrams that are returned first.
func (s *pathSocket) detachHeld() {
	s.heldBytes = s.heldBytes[:0]
	for i := range s.held {
		s.heldBytes = append(append(s.heldBytes, s.held[i].bytes...), s.held[i].rest...)
	}
	rest := s.heldBytes
	for i := range s.held {
		h := &s.held[i]
		n := len(h.bytes) + len(h.rest)
		h.bytes, h.rest, rest = rest[:n:n], nil, rest[n:]
	}
}

// deliverHeld returns datagrams in held.
func (s *pathSocket) deliverHeld(in []incoming) int {
	n := copy(in, s.held)
	s.held = append(s.held[:0], s.held[n:]...)
	s.pass()
	return n
}

// pass counts a bypassed datagram if it has been returned completely: the kernel may have coalesced it from several.
// Some datagrams of the kernel's socket are not counted by the path.
func (s *pathSocket) pass() {
	if len(s.held) == 0 && s.mmsgSocket.isDrained() {
		s.passed = min(s.passed+1, s.path.Bypassed())
	}
}

// receive receives datagrams of the path if all previous ones have been returned.
func (s *pathSocket) receive() {
	// Even if nothing is pending, the path must get the frames of the last call back.
	if s.next < s.count || s.count == 0 && !s.path.Pending() {
		return
	}
	s.next, s.count = 0, s.path.Receive(s.received[:])
	if s.count > 0 {
		s.emptyPolls = 0
	}
	// Datagrams of different queues may be out of order. One that waits for the kernel's socket must not delay earlier
	// ones.
	if byArrival := func(a, b Datagram) int { return cmp.Compare(a.After, b.After) }; s.count > 1 &&
		!slices.IsSortedFunc(s.received[:s.count], byArrival) {
		slices.SortStableFunc(s.received[:s.count], byArrival)
	}
}

// deliver returns datagrams of the path that no bypassed datagram precedes.
func (s *pathSocket) deliver(in []incoming) (n int) {
	for ; n < len(in) && s.next < s.count && s.received[s.next].After <= s.passed; n++ {
		in[n] = incoming{bytes: s.received[s.next].Bytes, from: s.received[s.next].From}
		s.next++
	}
	return n
}

// isBypassed reports whether the path has recently left out a datagram.
func (s *pathSocket) isBypassed() bool {
	if now := s.path.Bypassed(); now != s.bypassed {
		s.bypassed, s.spins = now, bypassSpins
	}
	return s.spins > 0
}

// asksKernel reports whether to poll the kernel's socket, which costs a system call.
func (s *pathSocket) asksKernel() bool {
	if s.isBypassed() {
		if s.spins--; s.spins == 0 {
			s.passed = s.bypassed // the kernel has dropped what has not arrived
		}
		return true
	}
	if s.emptyPolls++; s.emptyPolls < bypassPolls && s.kernelPeers.Load() == 0 && s.mmsgSocket.isDrained() {
		return false
	}
	s.emptyPolls = 0
	return true
}

func (s *pathSocket) recv(in []incoming) (int, error) {
	for {
		n, err := s.poll(in)
		if n > 0 || err != nil {
			return n, err
		}
		if err := s.waitReadable(); err != nil {
			return 0, err
		}
		s.emptyPolls = bypassPolls // the datagram may be in the kernel's socket
	}
}

// waitReadable waits for a datagram on the path or the kernel's socket. close wakes it through awake.
func (s *pathSocket) waitReadable() error {
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	if s.pathClosed.Load() {
		return net.ErrClosed
	}
	if err := s.watch(true); err != nil {
		return err
	}
	for !s.pathClosed.Load() {
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(s.epoll), Events: unix.POLLIN}}, -1); err != unix.EINTR {
			return err
		}
	}
	return net.ErrClosed
}

// wake makes epoll readable from now on.
func (s *pathSocket) wake() {
	_, _ = unix.Write(s.awake, []byte{1, 0, 0, 0, 0, 0, 0, 0}) // cannot fail for such a small number
}

// isDrained returns false after close, so that the caller polls again.
func (s *pathSocket) isDrained() bool {
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	return s.hasNothing()
}

func (s *pathSocket) hasNothing() bool {
	return !s.pathClosed.Load() && s.mmsgSocket.isDrained() && s.next == s.count && len(s.held) == 0 && !s.path.Pending()
}

func (s *pathSocket) sleep() bool {
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	if s.pathClosed.Load() {
		return false
	}
	if s.watch(true) != nil {
		s.wake() // The system's limit is exceeded. Sleep is no longer possible.
	}
	s.emptyPolls = bypassPolls // a datagram in the kernel's socket also ends the sleep
	return s.hasNothing()
}

func (s *pathSocket) unwatch() {
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	if !s.pathClosed.Load() {
		_ = s.watch(false)
	}
}

func (s *pathSocket) pollFD() int { return s.epoll }

// pathState describes the path, or returns nil after close.
func (s *pathSocket) pathState() *state.Path {
	s.pathSendMu.Lock()
	defer s.pathSendMu.Unlock()
	if s.pathClosed.Load() {
		return nil
	}
	described := s.path.State()
	described.Long = s.long.Load()
	return &described
}

// close implements socket. It wakes recv before it acquires the locks, because recv waits with pathRecvMu held.
func (s *pathSocket) close() error {
	if s.pathClosed.Swap(true) {
		return net.ErrClosed
	}
	if s.awake >= 0 {
		s.wake()
	}
	s.pathSendMu.Lock()
	defer s.pathSendMu.Unlock()
	s.pathRecvMu.Lock()
	defer s.pathRecvMu.Unlock()
	s.retry.Stop()
	s.path.Close()
	for _, fd := range []int{s.epoll, s.awake} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	return s.mmsgSocket.close()
}
