package standin

import (
	"fmt"
	"io"
	"math/bits"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// silentTime is how long a program may make no first call, or not complete one, before that is logged.
const silentTime = 10 * time.Second

// longWait is how long a call is waited for before that may explain the wait of another rank.
const longWait = time.Second

// programState is how far the program of an exec kernel is with its calls: what holds up a rank that waits for it.
type programState struct {
	name string
	log  *zap.Logger

	mu sync.Mutex
	// failure is the one since which no call has come, or empty, and failedAt its time.
	failure  string
	failedAt time.Time
	// Since waiting, the program has written got bytes of its next call: all of begun, if that is set, and data.
	// The zero time: no call is awaited.
	waiting time.Time
	calls   int // since it was started
	got     int64
	begun   *call
	late    *time.Timer // reports after silentTime that no call comes
}

// await notes that the next call of the program is waited for, or the data of one.
func (s *programState) await(begun *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting = time.Now(); begun == nil {
		s.got = 0
	}
	s.begun = begun
	if s.late == nil {
		s.late = time.AfterFunc(silentTime, s.report)
	} else {
		s.late.Reset(silentTime)
	}
}

// called notes that a call has come with all of its data.
func (s *programState) called() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.failure, s.waiting = "", time.Time{}
	s.late.Stop()
}

// ended notes that the program has ended.
func (s *programState) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.waiting = 0, time.Time{}
	if s.late != nil {
		s.late.Stop()
	}
}

// failed notes the failure of a call, or of the program.
func (s *programState) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failedAt = err.Error(), time.Now()
}

// report logs that the program makes no call.
func (s *programState) report() {
	s.mu.Lock()
	text := ""
	if s.calls == 0 || s.got > 0 { // a program that has made calls may compute
		text = s.silence()
	}
	s.mu.Unlock()
	if text != "" {
		s.log.Warn("program makes no call", zap.String("detail", text))
	}
}

// hasFailed reports whether the program or its last call has failed.
func (s *programState) hasFailed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure != ""
}

// problem describes why the program exchanges no messages, or is empty: its last failure, or that it makes no call.
func (s *programState) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != "" {
		return fmt.Sprintf("%s failed %v ago: %s", s.name, handshake.Round(time.Since(s.failedAt)), s.failure)
	}
	return s.silence()
}

// silence describes a long wait for a call, or is empty. The lock is held.
func (s *programState) silence() string {
	age := handshake.Round(time.Since(s.waiting))
	switch {
	case s.waiting.IsZero() || age < longWait:
		return ""
	case s.begun != nil:
		return fmt.Sprintf("%s has written %d of %d bytes of the data of %v, and no more for %v%s",
			s.name, s.got-callLen, s.begun.dataLen(), s.begun, age, s.begun.reversedLength(s.got))
	case s.got > 0:
		return fmt.Sprintf("%s has written %d of %d bytes of a call, and no more for %v", s.name, s.got, callLen, age)
	case s.calls == 0:
		return fmt.Sprintf("%s has made no call since it was started %v ago: a call arrives when the program flushes its standard output", s.name, age)
	}
	return fmt.Sprintf("%s has made no call for %v: a call arrives when the program flushes its standard output", s.name, age)
}

// output counts what a program writes.
type output struct {
	io.Reader
	state *programState
}

// Read reads into b.
func (o *output) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	if n > 0 {
		o.state.got += int64(n)
		o.state.waiting = time.Now()
	}
	return n, err
}

// dataLen is the length of the data that follows a call, in bytes.
func (c *call) dataLen() int64 {
	if !c.IsSend() {
		return 0
	}
	return int64(c.count) * protocol.WordLen
}

// reversedLength explains a program that has written as many bytes as a call has whose numbers are in the other byte
// order. It is empty for others.
func (c *call) reversedLength(got int64) string {
	other := c.reversed()
	if got != callLen+other.dataLen() {
		return ""
	}
	return other.explain()
}

// reversed is the call with its numbers in the other byte order.
func (c *call) reversed() *call {
	return &call{c.Call, bits.ReverseBytes32(c.count), bits.ReverseBytes32(c.rank)}
}

// explain describes that the numbers of a call would be those of c in the other byte order.
func (c *call) explain() string {
	return fmt.Sprintf(": with the most significant byte first it has count %d and rank %d, but the interface has the least significant byte first", c.count, c.rank)
}
