package mpemodel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Config describes the modeled FPGA.
type Config struct {
	// Rank is the FPGA's own rank, 0–63, on which its timeouts depend.
	Rank int
	// Peers are the ranks in the shell's address table. The shell drops packets from and to any other rank.
	Peers []int
	// SplitTail is set if the shell splits each 1424-byte datagram, which the MPE sometimes sends, into one of 1416
	// bytes and one of 8 (capture ref_mpe_echo_uoe_347).
	SplitTail bool
	// FIFOBytes is the size of the input FIFO in bytes; 0 means no limit. The deployed FIFO holds 2048 bytes (128 words
	// of 16 bytes), and the FIFO next to it 32 source ranks. While a FIFO is full, the shell holds back one datagram
	// and drops later ones.
	FIFOBytes int
}

// Packet is a datagram that the model transmits.
type Packet struct {
	// To is the rank that the shell sends the datagram to. The header may name another rank.
	To int
	// At is the send time, in the caller's time.
	At time.Duration
	// Bytes is the UDP payload.
	Bytes []byte
}

var (
	// ErrBusy is returned when a call is already in progress. A program has only one call at a time, because the
	// wrapper's calls block.
	ErrBusy = errors.New("mpemodel: a call is still in progress")
	// ErrRank is returned when a rank is outside 0–63, because the MPE has no cache line for such a rank.
	ErrRank = errors.New("mpemodel: rank is not in 0–63")
	// ErrCount is returned when the number of words exceeds the range of the wrapper's count, a signed 32-bit number.
	ErrCount = errors.New("mpemodel: more words than one MPI call can transfer")
)

// Model models one FPGA rank. The zero value is not usable; call New. A Model is not safe for concurrent use.
type Model struct {
	cfg         Config
	now         time.Duration
	in          input
	dequeuer    dequeuer
	wrapper     wrapper
	transmitted []Packet

	// Registers of the MPE.
	state         state
	call          call
	expected      expectation
	cache         cache
	timer         timer
	header        [protocol.HeaderLen]byte
	halfRead      bool // the first 16 bytes of a header were read
	source        int  // rank of the address from which the header came
	afterDrain    state
	midMessage    bool // a part of the message was received, up to the end of a datagram
	midSource     int  // the sender of that message
	expectedWords uint32
	receivedWords uint32
}

// New returns a model of an idle FPGA at time 0. It panics if the rank is outside 0–63.
func New(cfg Config) *Model {
	if cfg.Rank < 0 || cfg.Rank >= protocol.MaxRanksFPGA {
		panic(fmt.Sprintf("mpemodel: rank %d is not in 0–%d", cfg.Rank, protocol.MaxRanksFPGA-1))
	}
	cfg.Peers = slices.Clone(cfg.Peers)
	m := &Model{cfg: cfg}
	if cfg.FIFOBytes > 0 {
		m.in.maxWords = max(cfg.FIFOBytes/wordLen, 1)
		m.in.maxSources = maxSources
	}
	return m
}

// Send starts the wrapper's blocking call that sends a copy of words to rank dst. The error wraps ErrBusy, ErrRank or
// ErrCount.
func (m *Model) Send(now time.Duration, dst int, words []uint32, dt protocol.Datatype) error {
	c := call{peer: uint32(dst), call: dt.SendCall(), count: uint32(len(words))}
	if err := m.checkCall("send to", dst, int64(len(words))); err != nil {
		return err
	}
	m.advance(now)
	m.wrapper.startSend(c, words)
	m.run()
	return nil
}

// Recv starts the wrapper's blocking call that receives count words from rank src into a zeroed buffer. The error wraps
// ErrBusy, ErrRank or ErrCount.
func (m *Model) Recv(now time.Duration, src int, count uint32, dt protocol.Datatype) error {
	if err := m.checkCall("receive from", src, int64(count)); err != nil {
		return err
	}
	m.advance(now)
	m.wrapper.startRecv(call{peer: uint32(src), call: dt.RecvCall(), count: count})
	m.run()
	return nil
}

// maxCount is the maximum number of words in a call. The MPE's own counters have 32 bits.
const maxCount = math.MaxInt32

func (m *Model) checkCall(what string, peer int, count int64) error {
	switch {
	case m.Busy():
		return fmt.Errorf("rank %d: %s rank %d: %w (%s)", m.cfg.Rank, what, peer, ErrBusy, m.State())
	case peer < 0 || peer >= protocol.MaxRanksFPGA:
		return fmt.Errorf("rank %d: %s rank %d: %w", m.cfg.Rank, what, peer, ErrRank)
	case count > maxCount:
		return fmt.Errorf("rank %d: %s rank %d: %w: %d, at most %d",
			m.cfg.Rank, what, peer, ErrCount, count, maxCount)
	}
	return nil
}

// Datagram passes a copy of the payload b of a received UDP datagram to the shell. fromRank is the rank of the source
// address in the shell's table, or -1 for an unknown address. The shell drops empty datagrams and datagrams from
// unknown addresses.
func (m *Model) Datagram(now time.Duration, fromRank int, b []byte) {
	m.advance(now)
	if !slices.Contains(m.cfg.Peers, fromRank) || len(b) == 0 {
		m.in.dropped++
		return
	}
	m.in.enqueue(fromRank, b)
	m.run()
}

// Tick advances the time to now. It does nothing if an earlier call had the same or a later time.
func (m *Model) Tick(now time.Duration) { m.advance(now) }

// NextEvent returns the time at which the next timeout expires if nothing arrives before, and false if no timeout is
// running.
func (m *Model) NextEvent() (time.Duration, bool) {
	if !m.counting() || m.timer.expired || m.timer.retransmissions >= maxRetransmissions {
		return 0, false
	}
	return m.now + m.timer.remaining, true
}

// TakePackets returns the packets transmitted since the last call, in order.
func (m *Model) TakePackets() []Packet {
	out := m.transmitted
	m.transmitted = nil
	return out
}

// Busy reports whether a Send or Recv is in progress.
func (m *Model) Busy() bool { return m.wrapper.busy() }

// Result describes the latest call. done reports whether it has returned. After a Recv, words is the content of the
// user's buffer, which may be corrupt, and overrun reports whether the wrapper wrote past the end of the buffer (trap
// 12). A word directly after an odd count is not an overrun, because the wrapper drops it. After a Send, words is nil.
func (m *Model) Result() (words []uint32, overrun, done bool) {
	return slices.Clone(m.wrapper.buf), m.wrapper.overrun, m.wrapper.done
}

// Dropped returns the number of incoming datagrams that the shell dropped.
func (m *Model) Dropped() int { return m.in.dropped }

// State returns the current state of the MPE, by the name that the MPE's sources use.
func (m *Model) State() string {
	s := m.state.String()
	if m.halfRead {
		s += "_1"
	}
	return s
}
