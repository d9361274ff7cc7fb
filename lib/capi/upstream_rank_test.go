package capi

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node"
	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestStartLineErrors(t *testing.T) {
	for _, tc := range []struct {
		line string
		env  map[string]string
		want string
	}{
		{"app", nil, "zrlmpi: arguments: 0 are too few: "},
		{"app udp 10.0.0.1 2 7 10.0.0.2", nil, `zrlmpi: rank: "7" is not a rank`},
		{"app udp 10.0.0.1 2 0 10.0.0.2", map[string]string{EnvTimeout: "5"},
			`zrlmpi: ZRLMPI_TIMEOUT="5": must be a time such as 30s`},
		{"app udp 10.0.0.1 2 0 10.0.0.2", map[string]string{EnvTimeout: "-5s"}, `zrlmpi: ZRLMPI_TIMEOUT="-5s": `},
		{"app udp 10.0.0.1 2 0 10.0.0.2", map[string]string{EnvPeer: "gpu"},
			`zrlmpi: ZRLMPI_PEER="gpu": the kinds of peers are fpga, cpu and software`},
	} {
		var text strings.Builder
		l := New(Standard, &recorder{})
		l.errors = &text
		if n := l.StartLine(strings.Fields(tc.line), func(name string) string { return tc.env[name] }); n != 0 ||
			!strings.HasPrefix(text.String(), tc.want) {
			t.Errorf("%s: %d, %q, want %q", tc.line, n, text.String(), tc.want)
		}
	}
}

// onLine returns a rank in this process that was started with a start-up line.
func onLine(t *testing.T, dev mpe.Device) (*rank, *strings.Builder) {
	t.Helper()
	var text strings.Builder
	back := &recorder{}
	r := &rank{t: t, l: New(Standard, back), abi: "standard", back: back, text: &text}
	r.l.errors = &text
	r.l.openRank = func(*Library) (mpe.Device, error) { return dev, nil }
	// The launcher sets the rank.
	if n := r.l.StartLine([]string{"app", "argument"},
		func(name string) string { return map[string]string{pmi.EnvFD: "3"}[name] }); n != 1 {
		t.Fatalf("%d words: %s", n, text.String())
	}
	return r, &text
}

// TestLineStatistics checks that the messages of a program are counted, and that the counts remain after its end.
func TestLineStatistics(t *testing.T) {
	devices, err := node.StartLocal(2, protocol.CloudFPGA)
	if err != nil {
		t.Fatal(err)
	}
	defer devices[1].Close(t.Context())
	r, _ := onLine(t, devices[0])
	if text := r.l.Statistics(); text != "" {
		t.Errorf("before MPI_Init: %q", text)
	}
	r.ok("Init", nil, nil)
	received := make(chan error, 1)
	go func() {
		op, err := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0, Buf: make([]byte, 8)})
		if err == nil {
			_, err = op.Await(t.Context())
		}
		received <- err
	}()
	var out [maxArgs]uint64
	number := slices.IndexFunc(r.l.calls, func(c callEntry) bool { return c.name == "Pcontrol" })
	allocations := func() float64 {
		return testing.AllocsPerRun(100,
			func() { r.l.Call(number, unsafe.Pointer(&out)) })
	}
	watched := allocations()
	ln := r.l.upstream
	r.l.upstream = nil
	if others := allocations(); watched > others {
		t.Errorf("%v allocations a call, and %v without a watchdog", watched, others)
	}
	r.l.upstream = ln
	data := []int32{1, 2}
	r.ok("Send", unsafe.Pointer(&data[0]), 2, "INT32_T", 1, 0, "COMM_WORLD")
	if err := <-received; err != nil {
		t.Fatal(err)
	}
	r.ok("Finalize")
	text := r.l.Statistics()
	lines := strings.Split(text, "\n")
	if len(lines) != 5 || !strings.HasPrefix(lines[0], ">>>> ZRLMPI statistics: rank 0 of 2, ") ||
		strings.Join(strings.Fields(lines[2])[:4], " ") != "1 1 0 0" {
		t.Errorf("%q", text)
	}
}

// TestWatchdog checks that a call is reported once after the warning time and ends the process after the limit, and
// that shorter calls do neither.
func TestWatchdog(t *testing.T) {
	for _, tc := range []struct {
		limit, call time.Duration
		want        string
	}{
		{time.Minute, 9 * time.Second, ""},
		{time.Minute, 50 * time.Second, "Recv 10s false\n"},
		{time.Minute, 70 * time.Second, "Recv 10s false\nRecv 1m0s true\n"},
		{300 * time.Millisecond, time.Second, "Recv 300ms true\n"},
		{0, time.Hour, "Recv 10s false\n"},
	} {
		synctest.Test(t, func(t *testing.T) {
			var text strings.Builder
			w := &watchdog{limit: tc.limit, warning: 10 * time.Second}
			w.start(func(call string, limit time.Duration, over bool) { fmt.Fprintln(&text, call, limit, over) })
			for range 5 { // short calls must not add up
				w.enter(&callEntry{name: "Send"})
				time.Sleep(min(tc.limit/4, 5*time.Second))
				w.exit()
			}
			time.Sleep(time.Hour) // the program computes
			w.enter(&callEntry{name: "Recv"})
			time.Sleep(tc.call)
			w.exit()
			w.stop()
			if text.String() != tc.want {
				t.Errorf("%v of %v: %q, want %q", tc.call, tc.limit, text.String(), tc.want)
			}
		})
	}
}
