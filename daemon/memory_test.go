package daemon

import (
	"errors"
	"math"
	"os"
	"runtime/debug"
	"testing"

	"github.com/KimMachineGun/automemlimit/memlimit"

	"github.com/zrlmpi/zrlmpid/config"
)

func TestAttachedBytes(t *testing.T) {
	none := func() (uint64, error) { return 0, errors.New("nobody knows") }
	for _, tt := range []struct {
		configured config.Size
		available  memlimit.Provider
		want       int64
	}{
		{5 << 20, memlimit.Limit(1 << 30), 5 << 20},
		{0, memlimit.Limit(1 << 30), 512 << 20},
		{0, memlimit.Limit(1 << 20), minAttachedBytes},
		{0, memlimit.Limit(math.MaxUint64), 1 << 61},
		{0, none, minAttachedBytes},
	} {
		cfg := config.New()
		cfg.Limits.AttachedBytes = tt.configured
		if got := attachedBytes(cfg, tt.available); got != tt.want {
			t.Errorf("configured %v: %d, want %d", tt.configured, got, tt.want)
		}
	}
	if n, err := available(); err != nil || n < 1<<20 {
		t.Errorf("available: %d, %v", n, err)
	}
}

// TestLimitHeap checks that Go's heap gets most of the control group's memory that is not reserved for attached
// programs, unless the user has set a limit.
func TestLimitHeap(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	for _, name := range []string{"GOMEMLIMIT", "AUTOMEMLIMIT"} {
		if value, ok := os.LookupEnv(name); ok {
			t.Setenv(name, value) // restores the variable after the test
			os.Unsetenv(name)
		}
	}
	d, err := New(mustParse(t, newCluster(t).yaml("limits: {attached_bytes: 256MiB}", "run: host")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		group memlimit.Provider
		want  float64
	}{
		{memlimit.Limit(1 << 30), heapFraction * 768 * (1 << 20)},
		{memlimit.Limit(100 << 20), minHeapBytes},
		{func() (uint64, error) { return 0, memlimit.ErrNoLimit }, math.MaxInt64},
	} {
		d.limitHeap(tt.group)
		if got := debug.SetMemoryLimit(-1); math.Abs(float64(got)-tt.want) > 1 {
			t.Errorf("the heap's limit is %d, want %.0f", got, tt.want)
		}
	}
	debug.SetMemoryLimit(12345678)
	d.limitHeap(func() (uint64, error) { return 0, memlimit.ErrNoCgroup })
	t.Setenv("GOMEMLIMIT", "12345678")
	d.limitHeap(memlimit.Limit(1 << 30))
	if got := debug.SetMemoryLimit(-1); got != 12345678 {
		t.Errorf("the user's limit has become %d", got)
	}
}
