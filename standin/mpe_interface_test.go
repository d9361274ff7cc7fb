package standin

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
)

// FAIL is held back for longer after every failure in a row, so that a program
// that tries again at once does not spin; a call that goes well ends the row.
func TestFailPauses(t *testing.T) {
	good, bad := []byte{1, 1, 0, 0, 0, 0, 0, 0, 0}, []byte{1, 1, 0, 0, 0, 2, 0, 0, 0}
	tests := []struct {
		calls [][]byte
		want  time.Duration
	}{
		{[][]byte{good, good}, 0},
		{[][]byte{bad}, 100 * time.Millisecond},
		{[][]byte{bad, bad, bad}, 700 * time.Millisecond},
		{[][]byte{bad, bad, good, bad}, 400 * time.Millisecond},
		{[][]byte{bad, bad, bad, bad, bad, bad, bad, bad}, 16300 * time.Millisecond},
	}
	for _, tt := range tests {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			m := &mpeInterface{
				rank: &fuzzRank{}, in: bytes.NewReader(bytes.Join(tt.calls, nil)), out: &bytes.Buffer{},
				buf: make([]byte, interfaceRoom(1)), words: 1, log: zap.NewNop(), fails: new(counters),
			}
			if err := m.serve(t.Context()); err != nil {
				t.Error(err)
			}
			if d := time.Since(start); d != tt.want {
				t.Errorf("%d calls took %v, want %v", len(tt.calls), d, tt.want)
			}
		})
	}
}
