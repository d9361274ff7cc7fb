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

// silenceTimeout is the time after which the kernel logs that the program has made no call, or has not completed a
// call.
const silenceTimeout = 10 * time.Second

// minReportedWait is the time without a call after which a problem report mentions the missing call.
const minReportedWait = time.Second

// programState tracks the calls made by an exec kernel's program, to explain why a rank waits for the program.
type programState struct {
	name string
	log  *zap.Logger

	mu sync.Mutex
	// failure is the text of the most recent failure. It is empty if the program has made another call since. failedAt
	// is the time of the failure.
	failure  string
	failedAt time.Time
	// waitingSince is the time since which the kernel has been waiting for the next call or for data, or zero if it is
	// not waiting. awaitedCall is the call whose data is awaited, or nil if the kernel awaits a call. bytesRead is the
	// number of bytes received of the call and its data.
	waitingSince time.Time
	calls        int // number of calls since the program was started
	bytesRead    int64
	awaitedCall  *call
	silenceTimer *time.Timer // reports a missing call after silenceTimeout
}

// noteAwaiting records that the kernel is waiting for the program's next call or, if begun is non-nil, for the data of
// that call.
func (s *programState) noteAwaiting(begun *call) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waitingSince = time.Now(); begun == nil {
		s.bytesRead = 0
	}
	s.awaitedCall = begun
	if s.silenceTimer == nil {
		s.silenceTimer = time.AfterFunc(silenceTimeout, s.logSilence)
	} else {
		s.silenceTimer.Reset(silenceTimeout)
	}
}

// noteCall records that a call and all of its data were received.
func (s *programState) noteCall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	s.failure, s.waitingSince = "", time.Time{}
	s.silenceTimer.Stop()
}

// noteExit records that the program has exited.
func (s *programState) noteExit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.waitingSince = 0, time.Time{}
	if s.silenceTimer != nil {
		s.silenceTimer.Stop()
	}
}

// noteFailure records a failure of a call or of the program.
func (s *programState) noteFailure(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failure, s.failedAt = err.Error(), time.Now()
}

// logSilence logs that the program has been expected to make a call for a long time.
func (s *programState) logSilence() {
	s.mu.Lock()
	text := ""
	if s.calls == 0 || s.bytesRead > 0 { // a program that has made calls may be computing
		text = s.describeSilence()
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

// describeProblem describes why the program exchanges no messages: its last failure, or a missing call. It returns ""
// if it knows no problem.
func (s *programState) describeProblem() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failure != "" {
		return fmt.Sprintf("%s failed %v ago: %s", s.name, handshake.Round(time.Since(s.failedAt)), s.failure)
	}
	return s.describeSilence()
}

// describeSilence describes a long wait for a call, or returns "" if the program is not overdue. The caller must hold
// the lock.
func (s *programState) describeSilence() string {
	age := handshake.Round(time.Since(s.waitingSince))
	switch {
	case s.waitingSince.IsZero() || age < minReportedWait:
		return ""
	case s.awaitedCall != nil:
		return fmt.Sprintf("%s wrote %d of %d bytes of the data of %v, then nothing for %v%s",
			s.name, s.bytesRead-callLen, s.awaitedCall.dataLen(), s.awaitedCall, age,
			s.awaitedCall.byteOrderMismatch(s.bytesRead))
	case s.bytesRead > 0:
		return fmt.Sprintf("%s wrote %d of %d bytes of a call, then nothing for %v", s.name, s.bytesRead, callLen, age)
	case s.calls == 0:
		return fmt.Sprintf("%s has made no call since it was started %v ago: a call arrives when the program flushes "+
			"its standard output", s.name, age)
	}
	return fmt.Sprintf("%s has made no call for %v: a call arrives when the program flushes its standard output",
		s.name, age)
}

// countingReader is a reader that counts the bytes written by a program.
type countingReader struct {
	io.Reader
	state *programState
}

// Read reads into b and adds the number of bytes read to the count.
func (o *countingReader) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	o.state.mu.Lock()
	defer o.state.mu.Unlock()
	if n > 0 {
		o.state.bytesRead += int64(n)
		o.state.waitingSince = time.Now()
	}
	return n, err
}

// dataLen returns the length in bytes of the data that follows the call.
func (c *call) dataLen() int64 {
	if !c.IsSend() {
		return 0
	}
	return int64(c.count) * protocol.WordLen
}

// byteOrderMismatch returns an explanation if the program probably wrote the numbers of a call in big-endian order,
// that is, if the call read in this order announces exactly the number of bytes written. Otherwise, it returns "".
func (c *call) byteOrderMismatch(got int64) string {
	other := c.byteSwapped()
	if got != callLen+other.dataLen() {
		return ""
	}
	return other.byteOrderHint()
}

// byteSwapped returns the call with its numbers read in the other byte order.
func (c *call) byteSwapped() *call {
	return &call{c.Call, bits.ReverseBytes32(c.count), bits.ReverseBytes32(c.rank)}
}

// byteOrderHint returns a hint that the program wrote a call in the wrong byte order. c is the call as read in the
// other byte order.
func (c *call) byteOrderHint() string {
	return fmt.Sprintf(": read as big-endian it has count %d and rank %d, but the interface is little-endian", c.count,
		c.rank)
}
