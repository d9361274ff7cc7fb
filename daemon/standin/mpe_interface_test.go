package standin

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestFailPauses checks that FAIL is delayed longer after each consecutive failure, so that a program that
// retries immediately does not spin, and that a successful call ends the series.
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
				buf: make([]byte, interfaceBufLen(1)), words: 1, log: zap.NewNop(), counters: new(counters),
				state: new(programState),
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

// TestProgramMakesNoCall checks that a missing flush is diagnosed. The part of the next call that has been
// received is reported to ranks that wait. It is logged, once, if the call is incomplete or is the first call.
func TestProgramMakesNoCall(t *testing.T) {
	const receive = "\x01\x01\x00\x00\x00\x00\x00\x00\x00"
	for _, tt := range []struct {
		name string
		// written contains the bytes that the program writes before it falls silent.
		written, problem string
		logged           bool
	}{
		{"nothing", "", "program p has made no call since it was started 11s ago: a call arrives when the program " +
			"flushes its standard output", true},
		{"a call", receive, "program p has made no call for 11s: a call arrives when", false},
		{"part of a call", receive + "\x00\x02", "program p wrote 2 of 9 bytes of a call, then nothing for 11s", true},
		{"part of the data", "\x00\x02\x00\x00\x00\x00\x00\x00\x00abcd",
			"program p wrote 4 of 8 bytes of the data of SEND_INT with count 2 and rank 0, then nothing for 11s", true},
		{"all data, counted in the other byte order",
			"\x02\x00\x00\x01\x00\x00\x00\x00\x00" + strings.Repeat("data", 256),
			"SEND_FLOAT with count 65536 and rank 0, then nothing for 11s: read as big-endian it has count 256 " +
				"and rank 0", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				core, logs := observer.New(zap.WarnLevel)
				state := &programState{name: "program p", log: zap.New(core)}
				program, writes := io.Pipe()
				m := &mpeInterface{
					rank: &fuzzRank{}, in: &countingReader{program, state}, out: &bytes.Buffer{},
					buf: make([]byte, interfaceBufLen(1<<20)), words: 1 << 20, log: zap.NewNop(), counters: new(counters),
					state: state,
				}
				served := make(chan error, 1)
				go func() { served <- m.serve(t.Context()) }()
				if _, err := io.WriteString(writes, tt.written); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				if text := state.describeProblem(); text != "" {
					t.Errorf("at once: %q", text)
				}
				time.Sleep(11 * time.Second) // in the bubble
				if text := state.describeProblem(); !strings.Contains(text, tt.problem) {
					t.Errorf("%q, want %q", text, tt.problem)
				}
				if n := logs.FilterMessage("program makes no call").Len(); (n == 1) != tt.logged {
					t.Errorf("logged %d times", n)
				}
				writes.Close()
				<-served
				if state.noteExit(); state.describeProblem() != "" {
					t.Errorf("after its end: %q", state.describeProblem())
				}
			})
		})
	}
}

// TestReversedLength checks that a program that writes counts in the wrong byte order is detected by the total
// length of its output.
func TestReversedLength(t *testing.T) {
	c := &call{protocol.SendFloat, 1 << 16, 0} // 256 in the wrong byte order
	const want = ": read as big-endian it has count 256 and rank 0, but the interface is little-endian"
	if text := c.byteOrderMismatch(callLen + 1024); text != want {
		t.Errorf("%q", text)
	}
	if text := c.byteOrderMismatch(callLen + 1023); text != "" {
		t.Errorf("%q for another length", text)
	}
}
