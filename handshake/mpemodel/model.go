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
	// Rank is the FPGA's own rank, 0–63. The time-outs grow with it.
	Rank int
	// Peers are the ranks with an IP address in the shell's address table. The shell drops packets from and to any
	// other rank.
	Peers []int
	// SplitTail: the shell splits the 1424-byte datagrams that the MPE sometimes makes into 1416 + 8 bytes (capture
	// ref_mpe_echo_uoe_347).
	SplitTail bool
	// FIFOBytes bounds the input FIFO. The deployed FIFO has 128 words of 16 bytes, which is 2048, and 32 source ranks.
	// When it is full, the shell holds back one datagram and drops later ones. 0 means no bound.
	FIFOBytes int
}

// Packet is a datagram that the model transmits.
type Packet struct {
	// To is the rank to whose address the shell sends it. The header may name another one.
	To int
	// At is the send time, in the caller's time.
	At time.Duration
	// Bytes is the UDP payload.
	Bytes []byte
}

var (
	// ErrBusy: the wrapper's calls block, so a program has one call at a time.
	ErrBusy = errors.New("mpemodel: a call is still in progress")
	// ErrRank: the rank is outside 0–63, so the MPE has no cache line for it.
	ErrRank = errors.New("mpemodel: rank is not in 0–63")
	// ErrCount: the number of words exceeds the wrapper's count, a signed number of 32 bits.
	ErrCount = errors.New("mpemodel: more words than one MPI call can transfer")
)

// Model is one FPGA rank. The zero value is not useful; call New. A Model is not safe for concurrent use.
type Model struct {
	cfg  Config
	now  time.Duration
	in   input
	deq  dequeuer
	wrap wrapper
	out  []Packet

	// Registers of the MPE.
	state      state
	call       call
	want       expectation
	cache      cache
	timer      timer
	header     [protocol.HeaderLen]byte
	half       bool // the first 16 bytes of a header were read
	source     int  // rank of the address that the header came from
	afterDrain state
	mid        bool // a message is in progress
	midSource  int  // its sender
	wantWords  uint32
	gotWords   uint32
}

// New returns an idle FPGA at time 0. It panics if the rank is outside 0–63.
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

// Send starts the wrapper's blocking send of words to rank dst. It copies the words. The error wraps ErrBusy, ErrRank
// or ErrCount.
func (m *Model) Send(now time.Duration, dst int, words []uint32, dt protocol.Datatype) error {
	c := call{peer: uint32(dst), call: dt.Send(), count: uint32(len(words))}
	if err := m.admit("send to", dst, int64(len(words))); err != nil {
		return err
	}
	m.advance(now)
	m.wrap.startSend(c, words)
	m.run()
	return nil
}

// Recv starts the wrapper's blocking receive of count words from rank src, into a zeroed buffer. The error wraps
// ErrBusy, ErrRank or ErrCount.
func (m *Model) Recv(now time.Duration, src int, count uint32, dt protocol.Datatype) error {
	if err := m.admit("receive from", src, int64(count)); err != nil {
		return err
	}
	m.advance(now)
	m.wrap.startRecv(call{peer: uint32(src), call: dt.Recv(), count: count})
	m.run()
	return nil
}

// maxCount is the maximum length of a call in words. The MPE's own counters have 32 bits.
const maxCount = math.MaxInt32

func (m *Model) admit(what string, peer int, count int64) error {
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

// Datagram hands in a UDP payload. fromRank is the rank of the source address in the shell's table, or -1. The shell
// drops datagrams from unknown addresses, and empty ones. The bytes are copied.
func (m *Model) Datagram(now time.Duration, fromRank int, b []byte) {
	m.advance(now)
	if !slices.Contains(m.cfg.Peers, fromRank) || len(b) == 0 {
		m.in.dropped++
		return
	}
	m.in.offer(fromRank, b)
	m.run()
}

// Tick advances the time to now. A time before that of an earlier call has no effect.
func (m *Model) Tick(now time.Duration) { m.advance(now) }

// Next returns the time of the next time-out if nothing arrives before, and false if there is none.
func (m *Model) Next() (time.Duration, bool) {
	if !m.counting() || m.timer.dead || m.timer.retransmissions >= maxRetransmissions {
		return 0, false
	}
	return m.now + m.timer.left, true
}

// Out returns the packets transmitted since the last call, in order.
func (m *Model) Out() []Packet {
	out := m.out
	m.out = nil
	return out
}

// Busy reports whether a Send or Recv is in progress.
func (m *Model) Busy() bool { return m.wrap.busy() }

// Result describes the latest call. done reports that it has returned. After a Recv, words is the content of the user's
// buffer, of the posted length and damage included, and overrun reports that the wrapper wrote past its end (trap 12).
// One word more than an odd count is no overrun: the wrapper drops it. After a Send, words is nil.
func (m *Model) Result() (words []uint32, overrun, done bool) {
	return slices.Clone(m.wrap.buf), m.wrap.overrun, m.wrap.done
}

// Dropped returns the number of incoming datagrams that the shell dropped.
func (m *Model) Dropped() int { return m.in.dropped }

// State returns the name of the MPE's state in the sources.
func (m *Model) State() string {
	s := m.state.String()
	if m.half {
		s += "_1"
	}
	return s
}
