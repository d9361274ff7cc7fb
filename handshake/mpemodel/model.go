package mpemodel

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Config says which FPGA is modelled.
type Config struct {
	// Rank is the FPGA's own rank, 0–63. It lengthens the time-outs.
	Rank int
	// Peers are the ranks that the shell's address table has an IP address
	// for. The shell drops what comes from, and goes to, any other rank.
	Peers []int
	// SplitTail: the shell splits the 1424-byte datagrams that the MPE
	// sometimes makes into 1416 + 8 bytes (capture ref_mpe_echo_uoe_347).
	SplitTail bool
	// FIFOBytes bounds the input FIFO; the deployed one holds 128 words of
	// 16 bytes, which is 2048, and 32 source ranks. The shell then holds
	// back one datagram and drops what comes behind it. 0: no bound.
	FIFOBytes int
}

// Packet is a datagram that the model transmits.
type Packet struct {
	// To is the rank whose address the shell sends it to. The header may
	// name another one.
	To int
	// At is when it left, in the caller's time.
	At time.Duration
	// Bytes is the UDP payload.
	Bytes []byte
}

var (
	// ErrBusy: the wrapper's calls block, so a program has one at a time.
	ErrBusy = errors.New("mpemodel: a call is still in progress")
	// ErrRank: a rank outside 0–63, for which the MPE has no cache line.
	ErrRank = errors.New("mpemodel: rank is not in 0–63")
	// ErrCount: more words than the wrapper's count, a signed number of 32 bits, can say.
	ErrCount = errors.New("mpemodel: more words than one MPI call carries")
)

// Model is one FPGA rank. The zero value is not useful; call New. A Model is
// not safe for concurrent use.
type Model struct {
	cfg  Config
	now  time.Duration
	in   input
	deq  dequeuer
	wrap wrapper
	out  []Packet

	// The MPE's own registers.
	state      state
	call       call
	want       expectation
	cache      cache
	timer      timer
	header     [protocol.HeaderLen]byte
	half       bool // the first 16 bytes of a header are read
	source     int  // rank of the address the header came from
	afterDrain state
	mid        bool // a message has begun and has not ended
	midSource  int  // who sends it
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

// Send starts the wrapper's blocking send of words to rank dst. The words are
// copied. The error wraps ErrBusy, ErrRank or ErrCount.
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

// Recv starts the wrapper's blocking receive of count words from rank src. The
// user's buffer holds zeros before. The error wraps ErrBusy, ErrRank or
// ErrCount.
func (m *Model) Recv(now time.Duration, src int, count uint32, dt protocol.Datatype) error {
	if err := m.admit("receive from", src, int64(count)); err != nil {
		return err
	}
	m.advance(now)
	m.wrap.startRecv(call{peer: uint32(src), call: dt.Recv(), count: count})
	m.run()
	return nil
}

// maxCount is the longest call, in words. The MPE's own counters have 32 bits.
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

// Datagram hands in a UDP payload. fromRank is the rank that the shell's table
// gives for the source address, or -1: the shell drops a datagram from an
// address it does not know, and an empty one. The bytes are copied.
func (m *Model) Datagram(now time.Duration, fromRank int, b []byte) {
	m.advance(now)
	if !slices.Contains(m.cfg.Peers, fromRank) || len(b) == 0 {
		m.in.dropped++
		return
	}
	m.in.offer(fromRank, b)
	m.run()
}

// Tick lets time pass. A time before that of an earlier call counts as that
// one.
func (m *Model) Tick(now time.Duration) { m.advance(now) }

// Next returns when the next time-out fires if nothing arrives before, and
// false if none will.
func (m *Model) Next() (time.Duration, bool) {
	if !m.counting() || m.timer.dead || m.timer.retransmissions >= maxRetransmissions {
		return 0, false
	}
	return m.now + m.timer.left, true
}

// Out returns what was transmitted since the last call, in order.
func (m *Model) Out() []Packet {
	out := m.out
	m.out = nil
	return out
}

// Busy reports whether a Send or Recv has not returned.
func (m *Model) Busy() bool { return m.wrap.busy() }

// Result describes the latest call. done reports that it has returned. After a
// Recv, words is what the user's buffer holds, as many as were posted, damage
// included, and overrun reports that the wrapper wrote behind them (trap 12). One word
// more than an odd count is the exception: the wrapper drops it. After a Send,
// words is nil.
func (m *Model) Result() (words []uint32, overrun, done bool) {
	return slices.Clone(m.wrap.buf), m.wrap.overrun, m.wrap.done
}

// Dropped returns how many datagrams the shell has dropped on their way in.
func (m *Model) Dropped() int { return m.in.dropped }

// State returns the name that the source gives the MPE's state.
func (m *Model) State() string {
	s := m.state.String()
	if m.half {
		s += "_1"
	}
	return s
}
