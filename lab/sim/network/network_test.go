package network_test

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// parameters returns parameters that make each term of a time visible: a message takes 2·100 + 1000, plus 1 per byte
// at each end.
func parameters() network.Parameters {
	return network.Parameters{
		Host:    network.Host{Copy: 1, Reduce: 2, Publish: 10, Visible: 40, Switch: 50},
		Memory:  network.Link{Latency: 300, Overhead: 100, Eager: 1 << 20},
		Network: network.Link{Latency: 1000, Overhead: 100, Eager: 1 << 20},
	}
}

func flat(ranks int) network.Cluster {
	return network.Cluster{Ranks: ranks, PerHost: 1, Parameters: parameters()}
}

func find(t testing.TB, of coll.Collective, name string) *coll.Algorithm {
	t.Helper()
	a, err := coll.Find(of, name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func run(t testing.TB, c network.Cluster, of coll.Collective, name string, bytes int) float64 {
	t.Helper()
	r, err := c.Run(find(t, of, name), coll.Call{Collective: of, Bytes: bytes, Flows: true})
	if err != nil {
		t.Fatalf("%v by %s: %v", of, name, err)
	}
	return r.Nanoseconds
}

// TestTime checks that the time of a call follows from its schedule. A message takes a = 1200, from its step to the end
// of its receive.
func TestTime(t *testing.T) {
	const a = 1200
	shared := flat(2)
	shared.PerHost = 2
	four := shared
	four.Ranks, four.PerHost = 4, 4
	slow := flat(2)
	slow.Network.OverheadByte, slow.Network.GapByte = 1, 3
	long := flat(2)
	long.Network.Eager = 0
	pulls := shared
	pulls.Memory.Eager, pulls.Memory.Pulls, pulls.Memory.OverheadByte = 0, true, 1
	call := flat(2)
	call.Host.Call = 7
	for _, x := range []struct {
		what    string
		cluster network.Cluster
		of      coll.Collective
		by      string
		bytes   int
		want    float64
	}{
		{"a message", flat(2), coll.Bcast, "binomial", 8, a},
		{"overhead of a call", call, coll.Bcast, "binomial", 8, a + 7},
		{"a tree: three levels", flat(8), coll.Bcast, "binomial", 8, 3 * a},
		{"seven sends, the last arrives last", flat(8), coll.Bcast, "flat", 8, a + 6*100},
		{"a receiver handles one message at a time", flat(8), coll.Gather, "flat", 0, 0},
		{"all arrive at once, and the root copies its own block meanwhile", flat(8), coll.Gather, "flat", 8, a + 6*100},
		{"a ring", flat(8), coll.Allgather, "ring", 8, 7*a + 8},
		{"three exchanges, each with a reduction; a rank sends before it receives", flat(8), coll.Allreduce,
			"recursive-doubling", 8, 8 + 3*(a+2*8)},
		{"three rounds", flat(8), coll.Barrier, "dissemination", 0, 3 * a},
		{"a chain", flat(8), coll.Bcast, "chain", 8, 7 * a},
		{"the bytes, at the slowest", slow, coll.Bcast, "binomial", 1000, 100 + 1000 + 1000 + 3*1000 + 100 + 1000},
		{"request, clear to send, data, acknowledgement", long, coll.Bcast, "binomial", 8, 4 * a},
		{"request, copy, acknowledgement", pulls, coll.Bcast, "binomial", 8, 500 + 8 + 500},
		{"in memory", shared, coll.Bcast, "binomial", 8, 500},
		{"a shared buffer: copy, publication, copy", shared, coll.Bcast, "shared", 8, 8 + 10 + 40 + 10 + 8},
		{"each waits for three", four, coll.Barrier, "shared", 0, 10 + 40 + 10},
	} {
		if got := run(t, x.cluster, x.of, x.by, x.bytes); got != x.want {
			t.Errorf("%s: %v by %s takes %v ns, want %v", x.what, x.of, x.by, got, x.want)
		}
	}
}

// TestLevels checks that an interface serves the ranks on a host sequentially, and an uplink the hosts on a switch.
func TestLevels(t *testing.T) {
	// Ranks 0 to 3 send to ranks 4 to 7 in the first exchange, in which 8 ranks exchange halves.
	bytes := func(c *network.Cluster) { c.Network.GapByte = 1 }
	one, shared := flat(2), flat(4)
	bytes(&one)
	bytes(&shared)
	shared.PerHost = 2
	alone := run(t, one, coll.Allgather, "recursive-doubling", 1000)
	if want := 1200.0 + 2*1000; alone != want { // 2*1000 for a copy and for the bytes of the message
		t.Errorf("alone: %v ns, want %v", alone, want)
	}
	// In the second step, two ranks on each host exchange two blocks with the other host.
	if got, want := run(t, shared, coll.Allgather, "recursive-doubling", 1000), 1000.0+500+1200+2*2000; got != want {
		t.Errorf("two ranks of a host: %v ns, want %v", got, want)
	}
	switches := flat(4)
	switches.PerSwitch, switches.Uplink = 2, network.Link{Latency: 70, GapByte: 1}
	// In the second step, two hosts on each switch exchange two blocks with the other switch.
	if got, want := run(t, switches, coll.Allgather, "recursive-doubling", 1000),
		1000.0+1200+1200+70+2*2000; got != want {
		t.Errorf("two switches: %v ns, want %v", got, want)
	}
}

// TestReceivers checks that the interface of a receiver, and the uplink of its switch, accept messages from several
// senders sequentially.
func TestReceivers(t *testing.T) {
	c := flat(3)
	c.Network.GapByte = 1
	if got, want := run(t, c, coll.Gather, "flat", 1000), 100.0+1000+2*1000+100; got != want {
		t.Errorf("an interface: %v ns, want %v", got, want)
	}
	c = flat(3)
	c.PerSwitch, c.Uplink = 1, network.Link{Latency: 70, GapByte: 1}
	if got, want := run(t, c, coll.Gather, "flat", 1000), 100.0+1000+70+2*1000+100; got != want {
		t.Errorf("an uplink: %v ns, want %v", got, want)
	}
}

// TestSharedCores checks that a core serves its ranks in round-robin order. A rank that waits for a message receives it
// in its next time slice.
func TestSharedCores(t *testing.T) {
	c := flat(2)
	c.PerHost, c.Cores, c.Loopback = 2, 1, true
	// Either rank 0 sends from 50 to 150, its message is received at 1150, and rank 1 polls at 200, 300 and so on. Or
	// rank 1 begins at 50, and rank 0 sends from 100 to 200. The result is the mean over 6 assignments.
	first, last := 1200.0+100-200, 1250.0+100-50
	seen := false
	for k := 1.0; k < 6; k++ {
		seen = seen || math.Abs(run(t, c, coll.Bcast, "binomial", 8)-(k*first+(6-k)*last)/6) < 1e-3
	}
	if !seen {
		t.Errorf("%v ns: no mean of %v and %v", run(t, c, coll.Bcast, "binomial", 8), first, last)
	}
	c.Host.Switch = 0
	if got, want := run(t, c, coll.Bcast, "binomial", 8), 1200.0-100; got != want { // rank 1 begins after the send
		t.Errorf("time slices of 0: %v ns, want %v", got, want)
	}
	c.Host.Switch = 50
	four := c
	four.Ranks, four.PerHost = 4, 4
	before := 0.0
	for cores := 4; cores >= 1; cores-- {
		four.Cores = cores
		got := run(t, four, coll.Allreduce, "recursive-doubling", 8)
		if got <= before {
			t.Errorf("%d cores: %v ns, with one more %v", cores, got, before)
		}
		before = got
	}
	// With more ranks, a round takes longer, and so does its work.
	many := c
	many.Ranks, many.PerHost = 16, 16
	if got, few := run(t, many, coll.Allreduce, "recursive-doubling", 8),
		run(t, four, coll.Allreduce, "recursive-doubling", 8); got < 3*few {
		t.Errorf("16 ranks of a core: %v ns, 4: %v", got, few)
	}
	// There are more than 64 ranks, but only one at a time has work.
	most := c
	most.Ranks, most.PerHost, most.Host.Switch = 200, 200, 1
	if got := run(t, most, coll.Scan, "chain", 8); got < 199*1200 || got > 199*(1200+200+2*8) {
		t.Errorf("a chain of 200 ranks: %v ns", got)
	}
	if !four.Oversubscribed() || c.SharesMemory() {
		t.Error("four ranks on a core are oversubscribed, and a loopback device is no memory")
	}
}

// TestBarrier checks that ranks on a shared core do not begin at the same time after a barrier: the first to complete
// the barrier wait for the others.
func TestBarrier(t *testing.T) {
	c := flat(8)
	c.Barrier = true
	if got, want := run(t, c, coll.Bcast, "binomial", 8), 3*1200.0; got != want {
		t.Errorf("all leave the barrier at once: %v ns, want %v", got, want)
	}
	c.PerHost, c.Cores, c.Loopback = 8, 1, true
	after := run(t, c, coll.Bcast, "flat", 8)
	c.Barrier = false
	if at := run(t, c, coll.Bcast, "flat", 8); after <= at {
		t.Errorf("%v ns after a barrier, %v without one", after, at)
	}
}

// TestFlow checks that no byte of a flow moves before the last rank is ready. All data is then forwarded in pieces.
func TestFlow(t *testing.T) {
	c := flat(4)
	c.Network.GapByte = 1
	const n, piece = 100_000, 10_000
	r, err := c.Run(find(t, coll.Bcast, "atomic"),
		coll.Call{Collective: coll.Bcast, Bytes: n, Segment: piece, Flows: true})
	if err != nil {
		t.Fatal(err)
	}
	// A flow consists of a request, three clears, and the pieces, which cross three hops.
	if want := 4*1200.0 + 3*(1200+piece) + n - piece; r.Nanoseconds != want {
		t.Errorf("%v ns, want %v", r.Nanoseconds, want)
	}
}

// clusters returns a cluster of each kind.
func clusters(ranks int) map[string]network.Cluster {
	hosts, memory, cores, loopback, switches, fpga := flat(ranks), flat(ranks), flat(ranks), flat(ranks), flat(ranks),
		flat(ranks)
	hosts.PerHost = 3
	memory.PerHost, memory.Memory.Eager, memory.Memory.Pulls = ranks, 100, true
	cores.PerHost, cores.Cores = ranks, 2
	loopback.PerHost, loopback.Cores, loopback.Loopback = 4, 3, true
	switches.PerHost, switches.PerSwitch, switches.Uplink = 2, 2, network.Link{Latency: 10, GapByte: 0.1}
	fpga.Network.Eager, fpga.Blocking = -1, true
	barrier := cores
	barrier.Barrier = true
	return map[string]network.Cluster{"flat": flat(ranks), "hosts": hosts, "memory": memory, "cores": cores,
		"loopback": loopback, "switches": switches, "fpga": fpga, "barrier": barrier}
}

// TestAlgorithms checks that every algorithm completes on every kind of cluster. A second run takes the same time and
// has the same number of events.
func TestAlgorithms(t *testing.T) {
	for _, ranks := range []int{2, 3, 5, 8, 17} {
		for name, c := range clusters(ranks) {
			for of := coll.Barrier; of <= coll.Exscan; of++ {
				for _, a := range coll.Algorithms(of) {
					for _, bytes := range []int{0, 4, 1000, 70_000} {
						for _, segment := range []int{0, 4096} {
							call := coll.Call{Collective: of, Root: ranks - 1, Bytes: bytes, Elem: 4, Segment: segment,
								Flows: true}
							if segment > 0 && !a.Segmented || c.Blocking && !blocking(a) {
								continue
							}
							r, err := c.Run(a, call)
							if err != nil {
								if !errors.Is(err, coll.ErrCall) {
									t.Fatalf("%s, %d ranks: %v by %s of %d bytes: %v", name, ranks, of, a.Name, bytes,
										err)
								}
								continue
							}
							if again, err := c.Run(a, call); err != nil || again != r {
								t.Fatalf("%s, %d ranks: %v by %s of %d bytes: %v, then %v, %v", name, ranks, of, a.Name,
									bytes, r, again, err)
							}
						}
					}
				}
			}
		}
	}
}

// blocking reports whether ranks that execute one step at a time can run an algorithm.
func blocking(a *coll.Algorithm) bool {
	for rank := range 3 {
		var s coll.Schedule
		if a.Make(&s, &coll.Call{Collective: a.Collective, Rank: rank, Ranks: 3, Bytes: 8, Elem: 4,
			Flows: true}) != nil || s.Window > 1 {
			return false
		}
	}
	return a.Name == "flat" || a.Name == "toggle" || a.Name == "chain"
}

func TestErrors(t *testing.T) {
	a := find(t, coll.Bcast, "binomial")
	for _, change := range []func(*network.Cluster){
		func(c *network.Cluster) { c.Ranks = 1 },
		func(c *network.Cluster) { c.Ranks = network.MaxRanks + 1 },
		func(c *network.Cluster) { c.PerHost = 0 },
		func(c *network.Cluster) { c.Cores = -1 },
		func(c *network.Cluster) { c.PerSwitch = -1 },
		func(c *network.Cluster) { c.Host.Call = -1 },
		func(c *network.Cluster) { c.Memory.Latency = 1e10 },
		func(c *network.Cluster) { zero := 0.0; c.Network.GapByte = zero / zero },
		func(c *network.Cluster) { c.Uplink.Gap = -1 },
	} {
		c := flat(4)
		change(&c)
		if _, err := c.Run(a, coll.Call{Collective: coll.Bcast}); !errors.Is(err, network.ErrCluster) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	c := flat(4)
	if _, err := c.Run(a, coll.Call{Collective: coll.Bcast, Bytes: -1}); !errors.Is(err, coll.ErrCall) {
		t.Error(err)
	}
}

// TestMostRanks checks that a broadcast to the maximum number of ranks takes as long as 16 messages.
func TestMostRanks(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	if got, want := run(t, flat(network.MaxRanks), coll.Bcast, "binomial", 8), 16*1200.0; got != want {
		t.Errorf("%v ns, want %v", got, want)
	}
}

func BenchmarkEvents(b *testing.B) {
	for _, x := range []struct {
		of    coll.Collective
		by    string
		ranks int
	}{{coll.Allreduce, "recursive-doubling", 4096}, {coll.Alltoall, "pairwise", 256}, {coll.Bcast, "chain", 64}} {
		b.Run(fmt.Sprintf("%v/%s/%d", x.of, x.by, x.ranks), func(b *testing.B) {
			c, a := flat(x.ranks), find(b, x.of, x.by)
			var events uint64
			for b.Loop() {
				r, err := c.Run(a, coll.Call{Collective: x.of, Bytes: 4096, Segment: 64})
				if err != nil {
					b.Fatal(err)
				}
				events += r.Events
			}
			b.ReportMetric(float64(events)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
