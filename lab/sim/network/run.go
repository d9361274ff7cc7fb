package network

import (
	"fmt"
	"math/rand/v2"

	"github.com/zrlmpi/zrlmpid/lab/sim"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// Result is the predicted duration of a call.
type Result struct {
	// Nanoseconds is the time that the slowest rank takes. If ranks share cores, it is the mean over several
	// assignments of ranks to cores.
	Nanoseconds float64
	// Events is the number of events simulated.
	Events uint64
}

// distributions is the number of random assignments of ranks to cores over which a result is averaged. It applies to up
// to distributedRanks ranks. More ranks are simulated with a single assignment, which differs between hosts.
const (
	distributions    = 6
	distributedRanks = 1024
)

// Run simulates a call with an algorithm. It sets Ranks, Rank and Shared of the call to match the cluster. The error is
// a *ClusterError, or a *coll.CallError if the algorithm does not support the call.
func (c *Cluster) Run(a *coll.Algorithm, call coll.Call) (Result, error) {
	if err := c.Check(); err != nil {
		return Result{}, err
	}
	call.Ranks, call.Shared = c.Ranks, c.SharedBytes()
	m, err := newMachine(c, a, &call)
	if err != nil {
		return Result{}, err
	}
	times := 1
	if m.mustShareCores(min(c.PerHost, c.Ranks)) && c.Ranks <= distributedRanks {
		times = distributions
	}
	var sum sim.Cycle
	for i := range times {
		longest, err := m.run(uint64(i))
		if err != nil {
			return Result{}, err
		}
		sum += longest
	}
	return Result{float64(sum/sim.Cycle(times)) / 1000, m.clock.Events()}, nil
}

// newMachine returns a machine that is to execute a call. The error is a *coll.CallError.
func newMachine(cluster *Cluster, algorithm *coll.Algorithm, call *coll.Call) (*machine, error) {
	m := &machine{Cluster: *cluster, algorithm: algorithm, ranks: make([]rank, cluster.Ranks),
		hosts: make([]host, cluster.hosts())}
	var err error
	if m.barrier, err = coll.Find(coll.Barrier, "dissemination"); err != nil {
		return nil, err
	}
	if cluster.PerSwitch > 0 {
		m.switches = make([]port, m.switchOf(cluster.hosts()-1)+1)
	}
	for i := range m.ranks {
		r := &m.ranks[i]
		r.machine, r.number, r.host, r.call = m, i, i/cluster.PerHost, *call
		r.call.Rank = i
		r.endFunc = r.finishItem
		if err := algorithm.PrepareCall(&r.call); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// run executes the call with one assignment of ranks to cores, and returns the time of the slowest rank.
func (m *machine) run(distribution uint64) (longest sim.Cycle, err error) {
	for i := range m.hosts {
		m.assignRanks(i, distribution)
	}
	for i := range m.ranks {
		m.ranks[i].start()
	}
	m.clock.Run()
	for i := range m.ranks {
		r := &m.ranks[i]
		if r.inBarrier || !r.progress.IsDone() {
			return 0, fmt.Errorf("rank %d did not complete its schedule: an error of the model", i)
		}
		longest = max(longest, r.endTime-r.beginTime)
	}
	return longest, nil
}

// mustShareCores reports whether the given number of ranks on a host exceeds the number of its cores, so that ranks
// must share them.
func (m *machine) mustShareCores(ranks int) bool { return m.Cores > 0 && ranks > m.Cores }

// assignRanks assigns the ranks on a host to its cores if they must share them. The assignment is random, and cores
// have different numbers of ranks, because the kernel runs a rank on the core where it was woken up, and rebalances
// only after many milliseconds.
func (m *machine) assignRanks(number int, distribution uint64) {
	first := number * m.PerHost
	ranks := m.ranks[first:min(first+m.PerHost, m.Ranks)]
	if !m.mustShareCores(len(ranks)) {
		return
	}
	h := &m.hosts[number]
	if h.cores == nil {
		h.cores = make([]core, m.Cores)
	}
	for i := range h.cores {
		h.cores[i].init(&m.clock, toCycles(m.Host.Switch))
	}
	random := rand.New(rand.NewPCG(distribution, uint64(number)))
	for _, i := range random.Perm(len(ranks)) { // the order in which a core serves its ranks is random
		h.cores[random.IntN(m.Cores)].add(&ranks[i])
	}
}
