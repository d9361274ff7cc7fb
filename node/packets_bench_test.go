package node

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/node/recorder"
)

// BenchmarkRecorder measures the median round trip of 4 bytes over UDP, with and without a recorder of default size for
// the packets of both ranks. The pairs run in turn: alternating pairs would wait in different ways, which would cost
// more than the recorder.
func BenchmarkRecorder(b *testing.B) {
	for _, profile := range []string{"cloudfpga", "extended"} {
		for _, recorded := range []bool{false, true} {
			name := profile + "/off"
			if recorded {
				name = profile + "/on"
			}
			b.Run(name, func(b *testing.B) {
				near, far := recordedPair(b, profile, recorded, "")
				go echo(b.Context(), far)
				benchmarkPing(b, near)
			})
		}
	}
}

// benchmarkPing reports the median round trip of 4 bytes to rank 1, which echoes them.
func benchmarkPing(b *testing.B, near *mpe.Engine) {
	b.Helper()
	buf := make([]byte, 4)
	times := make([]float64, 0, 1<<16)
	b.ReportAllocs()
	for b.Loop() {
		start := time.Now()
		if _, err := near.Send(b.Context(), 1, buf, mpe.Options{}); err != nil {
			b.Fatal(err)
		}
		if _, err := near.Recv(b.Context(), 1, buf, mpe.Options{}); err != nil {
			b.Fatal(err)
		}
		times = append(times, float64(time.Since(start).Nanoseconds()))
	}
	slices.Sort(times)
	b.ReportMetric(times[len(times)/2], "p50-ns")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkKept measures the median round trip of 4 bytes over UDP, with and without a file in which both ranks keep
// their state.
func BenchmarkKept(b *testing.B) {
	for _, name := range []string{"off", "on"} {
		b.Run(name, func(b *testing.B) {
			state := ""
			if name == "on" {
				state = b.TempDir()
			}
			near, far := recordedPair(b, "cloudfpga", false, state)
			go echo(b.Context(), far)
			benchmarkPing(b, near)
		})
	}
}

// echo returns the messages of rank 0, until ctx ends.
func echo(ctx context.Context, e *mpe.Engine) {
	buf := make([]byte, 4)
	for {
		if _, err := e.Recv(ctx, 0, buf, mpe.Options{}); err != nil {
			return
		}
		if _, err := e.Send(ctx, 0, buf, mpe.Options{}); err != nil {
			return
		}
	}
}

// recordedPair returns the engines of two ranks that are connected over UDP until the end of the benchmark. If state
// is a directory, they keep their state in it.
func recordedPair(b *testing.B, profile string, recorded bool, state string) (near, far *mpe.Engine) {
	b.Helper()
	addrs, err := freeAddresses(2)
	if err != nil {
		b.Fatal(err)
	}
	cfg := mustParse(b, fmt.Sprintf(`
defaults: {profile: %s, transport: udp}
ranks:
- {rank: 0, address: %q, run: host}
- {rank: 1, address: %q, run: host}
`, profile, addrs[0], addrs[1]))
	m, err := RankMap(cfg)
	if err != nil {
		b.Fatal(err)
	}
	var engines []*mpe.Engine
	for rank := range 2 {
		r, err := Plan(cfg, cfg.Rank(rank))
		if err == nil {
			err = r.Bind(m)
		}
		if err != nil {
			b.Fatal(err)
		}
		var observer mpe.Observer = jobObserver{Recorder: r.RecordPhases(2)}
		if recorded {
			peers := make([]recorder.Peer, 2)
			peers[1-rank] = recorder.Peer{Recorded: true, Extended: profile == "extended"}
			r.FlightRecorder = recorder.New(16<<20, []recorder.Plan{{Rank: rank, Peers: peers}}).Rank(rank)
			observer = r.FlightRecorder.Observe(observer)
		}
		if state != "" {
			if err := r.KeepState(state); err != nil {
				b.Fatal(err)
			}
		}
		if err := r.Start(observer); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { r.Close(b.Context()) })
		engines = append(engines, r.Engine)
	}
	return engines[0], engines[1]
}
