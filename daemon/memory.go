package daemon

import (
	"errors"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/config"
)

const (
	// leastAttached is what attached programs may have where nothing says how much
	// memory there is, or hardly any.
	leastAttached = 64 << 20
	// leastHeap is the least limit of Go's heap that is set: with less the daemon
	// would do little but collect garbage.
	leastHeap = 64 << 20
	// heapPart is what of the memory that attached programs leave Go's heap may have.
	// The rest is for what Go's runtime does not count.
	heapPart = 0.9
)

// available is how much memory the process may take: its control group's limit, or that
// of the host.
var available = memlimit.ApplyFallback(memlimit.FromCgroup, memlimit.FromSystem)

// attachedBytes is how many bytes the operations of all attached programs may take:
// what the configuration says, or half of the memory that is available.
func attachedBytes(cfg *config.Config, available memlimit.Provider) int64 {
	if n := int64(cfg.Limits.AttachedBytes); n > 0 {
		return n
	}
	n, err := available()
	if err != nil {
		return leastAttached
	}
	return max(int64(min(n, 1<<62)/2), leastAttached)
}

// LimitHeap has Go's runtime collect garbage before the process exceeds the memory limit
// of its control group, if it has one. What attached programs may take is not part of
// Go's heap. It does nothing if the variable GOMEMLIMIT is set.
func (d *Daemon) LimitHeap() { d.limitHeap(memlimit.FromCgroup) }

func (d *Daemon) limitHeap(group memlimit.Provider) {
	var most uint64
	limit, err := memlimit.Set(memlimit.WithRatio(heapPart), memlimit.WithMin(leastHeap), memlimit.WithProvider(func() (n uint64, err error) {
		most, err = group()
		return most - min(most, uint64(d.attachedBytes)), err
	}))
	switch {
	case err != nil && !errors.Is(err, memlimit.ErrNoCgroup) && !errors.Is(err, memlimit.ErrCgroupsNotSupported):
		d.log.Warn("memory limit unknown: set GOMEMLIMIT if there is one", zap.Error(err))
	case most > 0:
		d.log.Info("memory limit", zap.Uint64("cgroup_bytes", most), zap.Int64("heap_bytes", limit), zap.Int64("attached_bytes", d.attachedBytes))
	}
}
