package daemon

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
)

// maxResident is the maximum resident memory of a daemon with manyRanks stand-ins.
const (
	manyRanks   = 64
	maxResident = 116 << 20 // including 16 MiB for packets (record.memory)
)

// TestManyRanks runs in a separate process, whose memory is not affected by other tests.
func TestManyRanks(t *testing.T) {
	const alone = "ZRLMPID_TEST_MANY_RANKS"
	if os.Getenv(alone) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestManyRanks$", "-test.v")
		cmd.Env = append(os.Environ(), alone+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		for line := range strings.Lines(string(out)) {
			if strings.Contains(line, "resident") {
				t.Log(strings.TrimSpace(line))
			}
		}
		return
	}
	c := newCluster(t)
	r := start(t, c.yaml("", echoes(manyRanks, ", quirks: off")...))
	var wg sync.WaitGroup
	for rank := 1; rank <= manyRanks; rank++ {
		wg.Go(func() {
			for _, words := range []int{1, 347, 5000} {
				r.ping(t, rank, words, 3)
			}
		})
	}
	wg.Wait()
	s, err := r.client.Status(within(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, rank := range s.Ranks {
		for _, p := range rank.Engine.Peers {
			if p.Failed > 0 {
				t.Errorf("rank %d: %d failures with rank %d", rank.Rank, p.Failed, p.Rank)
			}
		}
	}
	if race.Enabled || runtime.GOOS != "linux" {
		return // the race detector uses much more memory
	}
	runtime.GC()
	resident := residentMemory(t)
	t.Logf("%d stand-ins: %.1f MiB resident", manyRanks, float64(resident)/(1<<20))
	if resident > maxResident {
		t.Errorf("%d bytes are resident, want %d at most", resident, maxResident)
	}
}

// residentMemory returns the resident memory of this process in bytes.
func residentMemory(t *testing.T) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(text)) {
		var kib int64
		if n, _ := fmt.Sscanf(l, "VmRSS: %d kB", &kib); n == 1 {
			return kib << 10
		}
	}
	t.Fatal("no VmRSS in /proc/self/status")
	return 0
}
