package daemon

import (
	"errors"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
)

const (
	// minAttachedBytes is the lowest memory limit for attached programs. It is also their limit if the amount of
	// available memory is unknown.
	minAttachedBytes = 64 << 20
	// minHeapBytes is the lowest limit that the daemon sets for Go's heap. Below it, the daemon would spend most of its
	// time in garbage collection.
	minHeapBytes = 64 << 20
	// heapFraction determines how much memory Go's heap may use: this fraction of the memory not reserved for attached
	// programs. The rest is for memory that the Go runtime does not account for.
	heapFraction = 0.9
)

// available returns the memory limit of the process's control group or, without one, the memory of the host.
var available = memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)

// attachedBytes returns the memory limit for operations of all attached programs together: the configured limit, or
// half of the available memory if none is configured.
func attachedBytes(cfg *config.Config, available memlimit.Provider) int64 {
	if n := int64(cfg.Limits.AttachedBytes); n > 0 {
		return n
	}
	n, err := available()
	if err != nil {
		return minAttachedBytes
	}
	return max(int64(min(n, 1<<62)/2), minAttachedBytes)
}

// LimitHeap limits Go's heap so that the process stays below the memory limit of its control group, if any. Memory of
// attached programs is not part of Go's heap. LimitHeap is a no-op if GOMEMLIMIT is set.
func (d *Daemon) LimitHeap() { d.limitHeap(memlimit.FromCgroup) }

// limitHeap implements LimitHeap with the given source of the control group's limit, which tests replace.
func (d *Daemon) limitHeap(group memlimit.Provider) {
	var most uint64
	limit, err := memlimit.Set(memlimit.WithRatio(heapFraction), memlimit.WithMin(minHeapBytes),
		memlimit.WithProvider(func() (n uint64, err error) {
			most, err = group()
			return most - min(most, uint64(d.attachedBytes)), err
		}))
	switch {
	case err != nil && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported):
		d.log.Warn("memory limit unknown: set GOMEMLIMIT", zap.Error(err))
	case most > 0:
		d.log.Info("memory limit set", zap.Uint64("cgroup_bytes", most), zap.Int64("heap_bytes", limit),
			zap.Int64("attached_bytes", d.attachedBytes))
	}
}
