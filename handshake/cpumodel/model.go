package cpumodel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"
)

const (
	// maxRanks is the number of ranks that the library supports.
	maxRanks = 128
	// maxCount is the maximum number of words in a call, because the library computes the number of bytes as a signed
	// 32-bit number.
	maxCount = 1<<29 - 1024
	// socketBytes is the size of the receive buffer that the library requests, in bytes.
	socketBytes = 16 << 20
	// longMessage is the maximum number of words in a message that the library sends without pauses.
	longMessage = 65536
	// pause is the pause that the library requests after each datagram of a longer message.
	pause = 1100 * time.Nanosecond
)

// Config describes the modeled rank.
type Config struct {
	// Rank is the number of the modeled rank, 0–127.
	Rank int
	// Peers are the other ranks of the cluster, each with its own IP address.
	Peers []int
	// SocketBytes is the maximum total payload of the datagrams in the socket, in bytes. 0 means 16 MiB, which the
	// library requests. Linux grants at most twice net.core.rmem_max, and charges more than its payload for a datagram.
	SocketBytes int
	// Pause is the pause after each datagram of a message of more than 65536 words. 0 means 1.1 µs, which the library
	// requests. With common kernels, the pause really takes about 130 µs.
	Pause time.Duration
	// TimeoutDelay holds the delays by which the first, second and third timeout of a call expire late. Linux counts
	// ticks, and is less precise for longer times. With 250 ticks per second, the first timeout expires up to 4 ms
	// late, the second up to 32 ms, and the third up to 256 ms.
	TimeoutDelay [maxTimeouts]time.Duration
}

// Packet is a datagram that the model transmits.
type Packet struct {
	// To is the rank that the datagram is sent to.
	To int
	// At is the send time, in the caller's time.
	At time.Duration
	// Bytes is the UDP payload.
	Bytes []byte
}

var (
	// ErrBusy is returned when a call is already in progress. A program has only one call at a time, because the
	// library's calls block.
	ErrBusy = errors.New("cpumodel: a call is still in progress")
	// ErrRank is returned when a rank is not a peer. In this case, the real library exits the process.
	ErrRank = errors.New("cpumodel: rank is not a peer")
	// ErrCount is returned when the number of words exceeds the maximum for one call.
	ErrCount = errors.New("cpumodel: more words than one MPI call can transfer")
	// ErrCrashed reports that the process has crashed.
	ErrCrashed = errors.New("cpumodel: the process crashed")
)

// state is the state of the MPI call in progress.
type state uint8

const (
	idle        state = iota
	waitClear         // MPI_Send: SEND_REQUEST was sent
	sending           // MPI_Send: DATA is being sent
	waitAck           // MPI_Send: DATA was sent
	waitRequest       // MPI_Recv: nothing was sent
	waitData          // MPI_Recv: CLEAR_TO_SEND was sent
)

func (s state) String() string {
	return [...]string{
		"idle", "wait for CLEAR_TO_SEND", "send DATA", "wait for ACK", "wait for SEND_REQUEST", "wait for DATA",
	}[s]
}

// Model models one CPU rank: a process with the library and its socket. The zero value is not usable; call New. A Model
// is not safe for concurrent use.
type Model struct {
	cfg         Config
	now         time.Duration
	transmitted []Packet
	socket      socket

	// stalledUntil is the end of the current stall.
	stalledUntil time.Duration
	// interrupted is set if recvfrom has failed with EINTR. The process handles the failure when it runs again.
	interrupted bool
	crashReason string

	// Global variables of the library.
	deferred deferredHeaders

	// These fields describe the call in progress or, if there is none, the latest one.
	state  state
	peer   int
	count  int
	isRecv bool
	done   bool
	data   []byte // the program's words
	buf    []byte // the receive buffer
	// unsent is the part of DATA that is still to be sent.
	unsent []byte
	// nextAt is the time at which the next datagram of DATA is sent, or at which the recvfrom in progress times out.
	nextAt time.Duration
	// timeouts is the number of timeouts in the call so far.
	timeouts int
	wait     wait
}

// New returns a model of an idle process at time 0. It panics if a rank is outside 0–127.
func New(cfg Config) *Model {
	for _, r := range append([]int{cfg.Rank}, cfg.Peers...) {
		if r < 0 || r >= maxRanks {
			panic(fmt.Sprintf("cpumodel: rank %d is not in 0–%d", r, maxRanks-1))
		}
	}
	cfg.Peers = slices.Clone(cfg.Peers)
	if cfg.SocketBytes == 0 {
		cfg.SocketBytes = socketBytes
	}
	if cfg.Pause == 0 {
		cfg.Pause = pause
	}
	return &Model{cfg: cfg, socket: socket{limit: cfg.SocketBytes}, deferred: newDeferredHeaders(), wait: wait{from: -1}}
}

// Send starts MPI_Send of a copy of words to rank dst. The error wraps ErrBusy, ErrRank, ErrCount or ErrCrashed.
func (m *Model) Send(now time.Duration, dst int, words []uint32) error {
	if err := m.checkCall("send to", dst, len(words)); err != nil {
		return err
	}
	m.advance(now)
	m.beginCall(dst, len(words), false)
	for i, w := range words {
		binary.LittleEndian.PutUint32(m.data[i*wordLen:], w)
	}
	m.enter(waitClear)
	m.run()
	return nil
}

// Recv starts MPI_Recv of count words from rank src, into a zeroed buffer. The error wraps ErrBusy, ErrRank, ErrCount
// or ErrCrashed.
func (m *Model) Recv(now time.Duration, src, count int) error {
	if err := m.checkCall("receive from", src, count); err != nil {
		return err
	}
	m.advance(now)
	m.beginCall(src, count, true)
	m.buf = make([]byte, count*wordLen+recvSlack)
	m.enter(waitRequest)
	m.run()
	return nil
}

// beginCall resets the variables that each call of the library initializes. Deferred headers and queued datagrams are
// kept: they are how one call influences the next.
func (m *Model) beginCall(peer, count int, recv bool) {
	m.peer, m.count, m.isRecv = peer, count, recv
	m.done, m.timeouts = false, 0
	m.data = make([]byte, count*wordLen)
}

func (m *Model) checkCall(what string, peer, count int) error {
	var err error
	switch {
	case m.crashReason != "":
		err = ErrCrashed
	case m.Busy():
		err = ErrBusy
	case !slices.Contains(m.cfg.Peers, peer):
		err = ErrRank
	case count < 0 || count > maxCount:
		err = ErrCount
	default:
		return nil
	}
	return fmt.Errorf("rank %d: %s rank %d, %d words: %w", m.cfg.Rank, what, peer, count, err)
}

// Datagram passes the payload b of a received UDP datagram to the socket. fromRank is the rank of the source IP
// address, or -1 for an unknown address. Datagram copies b. It drops a datagram that does not fit into the socket's
// buffer.
func (m *Model) Datagram(now time.Duration, fromRank int, b []byte) {
	m.advance(now)
	m.socket.enqueue(fromRank, b)
	m.run()
}

// Stall suspends the process for d, as on a busy host. Incoming datagrams are queued in the socket, and the kernel's
// timeouts continue. When the process runs again, it reads a queued datagram even if the timeout has expired.
func (m *Model) Stall(now, d time.Duration) {
	m.advance(now)
	m.stalledUntil = max(m.stalledUntil, m.now+d)
}

// Stop is like Stall, but for a process that is stopped and continued by signals (SIGSTOP and SIGCONT, a debugger, the
// freezer of a container). A wait with a timeout then ends with EINTR, which the library mistakes for a datagram of -1
// bytes.
func (m *Model) Stop(now, d time.Duration) {
	m.advance(now)
	if _, timed := m.deadline(); timed && !m.stalled() {
		m.interrupted = true
	}
	m.stalledUntil = max(m.stalledUntil, m.now+d)
}

// Tick advances the time to now. It does nothing if an earlier call had the same or a later time.
func (m *Model) Tick(now time.Duration) { m.advance(now) }

// TakePackets returns the packets transmitted since the last call, in order.
func (m *Model) TakePackets() []Packet {
	out := m.transmitted
	m.transmitted = nil
	return out
}

// Busy reports whether a Send or Recv is in progress.
func (m *Model) Busy() bool { return m.state != idle }

// Result describes the latest call. done reports whether it has returned. After a Recv, words is the content of the
// program's buffer, which may be wrong. After a Send, words is nil.
func (m *Model) Result() (words []uint32, done bool) {
	if !m.isRecv {
		return nil, m.done
	}
	words = make([]uint32, m.count)
	for i := range words {
		words[i] = binary.LittleEndian.Uint32(m.data[i*wordLen:])
	}
	return words, m.done
}

// Crashed reports whether the process has written outside its memory, and where. A real process may crash later or not
// at all.
func (m *Model) Crashed() (why string, crashed bool) { return m.crashReason, m.crashReason != "" }

// Dropped returns the number of datagrams dropped because the socket's buffer was full.
func (m *Model) Dropped() int { return m.socket.dropped }

// State returns the state of the process.
func (m *Model) State() string {
	if m.crashReason != "" {
		return "crashed"
	}
	return m.state.String()
}
