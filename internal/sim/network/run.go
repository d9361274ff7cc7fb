package network

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Result is what a call takes.
type Result struct {
	// Nanoseconds is the time of the rank for which the call takes longest.
	Nanoseconds float64
	// Events is how many events the model has had.
	Events uint64
}

// Run executes a call by an algorithm. The call's Ranks, Rank and Shared are the cluster's. The error is
// a *ClusterError, or a *coll.CallError if the algorithm cannot carry out the call.
func (c *Cluster) Run(a *coll.Algorithm, call coll.Call) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	call.Ranks, call.Shared = c.Ranks, c.SharedBytes()
	m := &machine{Cluster: *c, ranks: make([]rank, c.Ranks), hosts: make([]host, c.hosts())}
	if c.PerSwitch > 0 {
		m.switches = make([]port, m.switchOf(c.hosts()-1)+1)
	}
	calls := make([]coll.Call, c.Ranks) // schedules read them
	for i := range m.ranks {
		r := &m.ranks[i]
		r.machine, r.number, r.host = m, i, i/c.PerHost
		r.ended = r.end
		calls[i] = call
		calls[i].Rank = i
		if err := a.Make(&r.schedule, &calls[i]); err != nil {
			return Result{}, err
		}
		r.progress.Begin(&r.schedule)
	}
	for i := range m.hosts {
		if n := min(c.PerHost, c.Ranks-i*c.PerHost); c.Cores > 0 && n > c.Cores {
			m.hosts[i].shares, m.hosts[i].idle = true, make([]*rank, c.Cores)
			m.hosts[i].change = cycles(c.Host.Switch * float64(n-c.Cores) / float64(c.Cores))
		}
	}
	for i := range m.ranks {
		m.ranks[i].work(item{kind: itemBegin, cost: cycles(c.Host.Call)})
	}
	m.clock.Run()
	var longest sim.Cycle
	for i := range m.ranks {
		r := &m.ranks[i]
		if !r.progress.Over() {
			return Result{}, fmt.Errorf("rank %d did not complete its schedule: an error of the model", i)
		}
		longest = max(longest, r.over-r.began)
	}
	return Result{float64(longest) / 1000, m.clock.Events()}, nil
}
