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

// silentTime is the time without a first call, or with an incomplete call, after which that is logged.
const silentTime = 10 * time.Second

// longWait is the time without a call from which it may explain the wait of another rank.
const longWait = time.Second

// programState tracks the calls of an exec kernel's program, to explain the wait of a rank for it.
type programState struct {
	name string
	log  *zap.Logger

	mu sync.Mutex
	// failure is the text of a failure since which no call has arrived, or empty; failedAt is its time.
	failure  string
	failedAt time.Time
	// waiting is the time since which the next call, or data, is awaited, or zero. got is the number of bytes
	// of that call received: begun, if it is set, and a part of its data.
	waiting time.Time
	calls   int // since the program was started
	got     int64
	begun   *call
	late    *time.Timer // reports a missing call after silentTime
}

// await records that the next call of the program, or the data of begun, is awaited.
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

// called records that a call has arrived with all of its data.
func (s *programState) called() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.failure, s.waiting = "", time.Time{}
	s.late.Stop()
}

// ended records that the program has ended.
func (s *programState) ended() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.waiting = 0, time.Time{}
	if s.late != nil {
		s.late.Stop()
	}
}

// failed records the failure of a call, or of the program.
func (s *programState) failed(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failedAt = err.Error(), time.Now()
}

// report logs that the program makes no call.
func (s *programState) report() {
	s.mu.Lock()
	text := ""
	if s.calls == 0 || s.got > 0 { // a program that has made calls may be computing
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

// problem describes why the program exchanges no messages: its last failure, or a missing call. It returns ""
// without a problem.
func (s *programState) problem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != "" {
		return fmt.Sprintf("%s failed %v ago: %s", s.name, handshake.Round(time.Since(s.failedAt)), s.failure)
	}
	return s.silence()
}

// silence describes a long wait for a call, or returns "". The caller holds the lock.
func (s *programState) silence() string {
	age := handshake.Round(time.Since(s.waiting))
	switch {
	case s.waiting.IsZero() || age < longWait:
		return ""
	case s.begun != nil:
		return fmt.Sprintf("%s wrote %d of %d bytes of the data of %v, then nothing for %v%s",
			s.name, s.got-callLen, s.begun.dataLen(), s.begun, age, s.begun.reversedLength(s.got))
	case s.got > 0:
		return fmt.Sprintf("%s wrote %d of %d bytes of a call, then nothing for %v", s.name, s.got, callLen, age)
	case s.calls == 0:
		return fmt.Sprintf("%s has made no call since it was started %v ago: a call arrives when the program flushes "+
			"its standard output", s.name, age)
	}
	return fmt.Sprintf("%s has made no call for %v: a call arrives when the program flushes its standard output",
		s.name, age)
}

// output counts the bytes that a program writes.
type output struct {
	io.Reader
	state *programState
}

// Read reads into b and counts the bytes.
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

// dataLen returns the length in bytes of the data that follows a call.
func (c *call) dataLen() int64 {
	if !c.IsSend() {
		return 0
	}
	return int64(c.count) * protocol.WordLen
}

// reversedLength explains a program that has written as many bytes as a call with its numbers in the other byte
// order would have. It returns "" otherwise.
func (c *call) reversedLength(got int64) string {
	other := c.reversed()
	if got != callLen+other.dataLen() {
		return ""
	}
	return other.explain()
}

// reversed returns the call with its numbers in the other byte order.
func (c *call) reversed() *call {
	return &call{c.Call, bits.ReverseBytes32(c.count), bits.ReverseBytes32(c.rank)}
}

// explain returns the hint that a call has the wrong byte order. c is the call in the other byte order.
func (c *call) explain() string {
	return fmt.Sprintf(": read as big-endian it has count %d and rank %d, but the interface is little-endian", c.count,
		c.rank)
}
