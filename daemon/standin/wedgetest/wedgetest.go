// Package wedgetest fails a test in which a stand-in receives packets that would wedge a deployed FPGA or corrupt the
// data that it receives. A stand-in detects such packets by rules that the tests of package handshake check against the
// model of the MPE. Tests that send such packets on purpose, or that duplicate packets in the network, do not use this
// package.
package wedgetest

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Check fails the test if the engine has detected packets that would have wedged an FPGA.
func Check(t testing.TB, e *mpe.Engine) {
	t.Helper()
	rank := 0
	e.Counters(func(c *state.RankCounters) { rank = c.Rank }, func(c *state.PeerCounters) {
		if n := c.Events[state.EventWouldWedge]; n > 0 {
			t.Errorf("rank %d sent stand-in %d messages that would have wedged an FPGA, %d times", c.Rank, rank, n)
		}
	})
}

// Log returns a logger for a daemon. The logger writes to log, unless it is nil, and fails the test if a stand-in of
// the daemon detects packets that would have wedged an FPGA.
func Log(t testing.TB, log *zap.Logger) *zap.Logger {
	core := zapcore.Core(wedgeChecker{t})
	if log != nil {
		core = zapcore.NewTee(log.Core(), core)
	}
	return zap.New(core)
}

// wedgeChecker is a log core that fails a test on lines of level error and above.
type wedgeChecker struct{ t testing.TB }

func (wedgeChecker) Enabled(l zapcore.Level) bool        { return l >= zapcore.ErrorLevel }
func (j wedgeChecker) With([]zapcore.Field) zapcore.Core { return j }
func (wedgeChecker) Sync() error                         { return nil }

func (j wedgeChecker) Check(e zapcore.Entry, to *zapcore.CheckedEntry) *zapcore.CheckedEntry {
	if !j.Enabled(e.Level) {
		return to
	}
	return to.AddCore(e, j)
}

func (j wedgeChecker) Write(e zapcore.Entry, fields []zapcore.Field) error {
	enc := zapcore.NewMapObjectEncoder()
	for _, f := range fields {
		f.AddTo(enc)
	}
	if enc.Fields["event"] == state.EventWouldWedge.String() {
		j.t.Errorf("%s: %v", e.Message, enc.Fields)
	}
	return nil
}
