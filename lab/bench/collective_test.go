package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/zrlmpi/zrlmpid/lab/chart"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// TestMethods checks that a rank can parse the names of all methods.
func TestMethods(t *testing.T) {
	var names []string
	for _, m := range extendedUDP.methods {
		again, err := parseMethod(m.String())
		if err != nil || again != m.method {
			t.Errorf("%v: %+v, %v", m, again, err)
		}
		names = append(names, m.key+"="+m.String())
	}
	const want = "udp-binomial=binomial udp-flat=flat udp-scatter=scatter-allgather udp-chain=chain:32KiB " +
		"udp-atomic=atomic:32KiB udp-free-first=atomic:32KiB/free-first udp-by-left=atomic:32KiB/by-left"
	if got := strings.Join(names, " "); got != want {
		t.Error(got)
	}
	if got := strings.Join(extendedTCP.methodKeys(), " "); got != "tcp-chain tcp-atomic" {
		t.Error(got)
	}
	if m, err := parseMethod(""); err != nil || m != (method{}) {
		t.Errorf("%v, %v", m, err)
	}
	for _, x := range []struct{ text, says string }{
		{"ring", "bcast has no algorithm"},
		{"chain:x", "segments of"},
		{"atomic/fastest", `there is no order "fastest" that changes`},
	} {
		if _, err := parseMethod(x.text); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("%s: %v", x.text, err)
		}
	}
}

// asked is a device that records which operation was requested.
type asked struct {
	noDevice
	mpe.BasicDevice
	call collective.Operation
}

// noDevice provides methods that are never called.
type noDevice struct{ mpe.Device }

func (a *asked) Size() int                      { return 8 }
func (a *asked) Rank() int                      { return 0 }
func (a *asked) Peer(int) (mpe.PeerInfo, error) { return mpe.PeerInfo{}, nil }
func (a *asked) StartCollective(c *collective.Operation) (mpe.Op, error) {
	a.call = *c
	return nil, errNo
}

var errNo = errors.New("no")

// TestUse checks that a broadcast uses the algorithm, the segment size and the order of its method, regardless of the
// method used before.
func TestUse(t *testing.T) {
	dev := new(asked)
	order := &orderer{Device: dev}
	world, err := mpi.New(order)
	if err != nil {
		t.Fatal(err)
	}
	b := &collectiveCalls{session: sessionOf(t.Context(), world)}
	b.order = order
	for _, x := range []struct {
		text string
		want coll.Call
	}{
		{"", coll.Call{}},
		{"atomic:32KiB/by-left", coll.Call{Segment: 32 << 10, OrderForm: coll.OrderByLeft}},
		{"atomic:16KiB/free-first", coll.Call{Segment: 16 << 10, OrderForm: coll.OrderFreeFirst}},
		{"atomic", coll.Call{}},
	} {
		m, err := parseMethod(x.text)
		if err != nil {
			t.Fatal(err)
		}
		if err := mpi.Bcast(b.ctx, b.comm, make([]int32, 3), 0, b.selectMethod(&m)...); !errors.Is(err, errNo) {
			t.Error(err)
		}
		if c := dev.call; c.Algorithm != m.by.Algorithm || c.Call.Segment != x.want.Segment ||
			c.Call.OrderForm != x.want.OrderForm || len(c.Recv) != 12 {
			t.Errorf("%s: %+v", x.text, c)
		}
	}
}

// TestParts checks that the side of a method takes part only in broadcasts, and that it can be measured alone.
func TestParts(t *testing.T) {
	r, _ := quick(t, Options{Workloads: []string{"bcast-busy", "ring"},
		Only: []string{"udp-by-left", "tcp-atomic", "extended-tcp"}})
	for workload, want := range map[string][]string{"bcast-busy": {"udp-by-left", "extended-tcp", "tcp-atomic"},
		"ring": {"extended-tcp"}} {
		var keys []string
		for _, s := range r.result(workload).Sides {
			keys = append(keys, s.Key)
			if s.Memory == 0 || s.Median[0].CPU <= 0 {
				t.Errorf("%+v", s)
			}
		}
		if !slices.Equal(keys, want) {
			t.Errorf("%s: %v", workload, keys)
		}
	}
	if s := r.result("bcast-busy").side("udp-by-left"); s.Method != "atomic:32KiB/by-left" ||
		s.Name != "zrlmpid, extended, UDP, atomic:32KiB/by-left" {
		t.Errorf("%+v", s)
	}
}

// TestPartsFail checks that a run that fails counts as a failure of all sides in it.
func TestPartsFail(t *testing.T) {
	var progress strings.Builder
	r, err := Run(t.Context(),
		Options{Workloads: []string{"bcast"}, Steps: "5:1", Only: []string{"extended-udp", "udp-flat"}, Rounds: 1},
		&progress)
	if err != nil || len(r.Failed) != 1 || !strings.Contains(r.Failed[0], "5 bytes are not a number of words") ||
		len(r.Results[0].Sides) != 0 {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestCollectiveLies checks that a wrong result ends the measurement, and so does wrong data from the busy rank.
func TestCollectiveLies(t *testing.T) {
	for _, x := range []struct {
		name         string
		op           *operation
		liar, honest int
		lie          func(*collectiveCalls)
		says         string
	}{
		{"bcast", operations[0], 0, 5, func(c *collectiveCalls) { c.sendBuf[1]++ }, "block 0: word 1 is "},
		{"allreduce", operations[1], 6, 7, func(c *collectiveCalls) { c.sendBuf[14]-- }, "block 0: word 14 is "},
		{"alltoall", operations[2], 3, 5, func(c *collectiveCalls) { c.sendBuf[5*16+7]++ }, "block 3: word 7 is "},
		{"reduce", operations[3], 4, 0, func(c *collectiveCalls) { c.sendBuf[2]++ }, "block 0: word 2 is "},
		{"gather", operations[4], 2, 0, func(c *collectiveCalls) { c.sendBuf[3]++ }, "block 2: word 3 is "},
		{"own", operations[0], 1, 2, func(c *collectiveCalls) { c.busyData[7]++ }, "the data of rank 1: word 7 is "},
	} {
		t.Run(x.name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var ranks errgroup.Group
			for rank, w := range worldsOf(t, bcastRanks) {
				s := sessionOf(ctx, w)
				s.costs = make([]cost, 1)
				ranks.Go(func() error {
					switch rank {
					case x.liar:
						c, err := newCollectiveCalls(s, step{64, 1}, x.op, bcastRanks, busyBytes)
						if err != nil {
							return err
						}
						x.lie(c)
						_, _, _ = c.runRound(nil, -1, true) // the round may be cancelled
						return nil
					case x.honest:
						defer cancel() // ends the other ranks, which wait for this one
						_, err := collectiveStep(s, step{64, 1}, x.op, bcastRanks, busyBytes)
						if want := `by "": round -1: ` + x.says; err == nil || !strings.Contains(err.Error(), want) {
							return fmt.Errorf("rank %d: %w", rank, errors.Join(errNoLie, err))
						}
						return nil
					}
					_, _ = collectiveStep(s, step{64, 1}, x.op, bcastRanks, busyBytes) // it fails or is cancelled
					return nil
				})
			}
			if err := ranks.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

var errNoLie = errors.New("the lie is not found")

// bcastReport returns a report of broadcasts of two lengths, with the given times for each side.
func bcastReport(workload string, times map[string][2]float64) *Report {
	r := &Report{Rounds: 1, Results: []Result{{Workload: workload}}}
	for i := range links {
		for _, p := range links[i].parts() {
			if at, ok := times[p.Key]; ok {
				r.Results[0].Sides = append(r.Results[0].Sides,
					Measured{Side: p.Side, Memory: 1024,
						Figures: Figures{Rounds: [][]Point{{{N: 4, P50: at[0]}, {N: 1 << 20, P50: at[1]}}}}})
			}
		}
	}
	if at, ok := times[openMPITCP]; ok {
		r.Results[0].Sides = append(r.Results[0].Sides, Measured{
			Side:    Side{Key: openMPITCP, Name: "Open MPI, TCP", Kind: Peer, Group: Network},
			Figures: Figures{Rounds: [][]Point{{{N: 4, P50: at[0]}, {N: 1 << 20, P50: at[1]}}}},
		})
	}
	r.computeDerived()
	return r
}

// TestBcastVerdicts checks that the chosen method is compared with the best of all methods, at the length where it is
// worst in comparison.
func TestBcastVerdicts(t *testing.T) {
	r := bcastReport("bcast", map[string][2]float64{
		"extended-udp": {110, 2000}, "udp-binomial": {100, 5000}, "udp-flat": {105, 6000}, "udp-chain": {200, 4000},
		"udp-atomic":  {180, 1000},
		"udp-by-left": {216, 900}, openMPITCP: {100, 4000},
	})
	for name, want := range map[string]string{
		"broadcast, extended over UDP: time by atomic by that by chain":                                         "met: 0.900 (4 B)",
		"broadcast, extended over UDP: time by atomic, ordered by what ranks have left, by that in fixed order": "missed: 1.20 (4 B)",
		"broadcast, extended over UDP: time by the chosen algorithm by that of the best":                        "missed: 2.22 (1 MiB)",
		"Broadcast to 8 ranks, over the default transport, UDP: time by Open MPI's over TCP":                    "missed: 1.10 (4 B)",
		"broadcast, shared memory: time by the chosen algorithm by that of the best":                            "not measured",
		"Broadcast to 8 ranks, a neighbour takes a fifth of each processor: p50 by that without it":             "not measured",
	} {
		if got := verdictOf(r, name); got != want {
			t.Errorf("%s: %s instead of %s", name, got, want)
		}
	}
	var b strings.Builder
	if err := r.Print(&b, Format{}); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		"message  extended-udp ÷ best of udp-…  udp-atomic ÷ udp-chain  udp-by-left ÷ udp-atomic  extended-udp ÷ " +
			"openmpi-tcp\n",
		"    4 B                          1.10                    0.90                      1.20                     " +
			"   1.10\n",
		"Peak memory of a process, in MiB\nextended-udp\n        1.00\n\n",
	} {
		if !strings.Contains(b.String(), text) {
			t.Errorf("there is no %q in\n%s", text, b.String())
		}
	}
}

// TestPaired checks that rounds are compared one by one if both sides ran in the same processes. Otherwise, their
// medians are compared.
func TestPaired(t *testing.T) {
	of := func(key, with string, times ...float64) Measured {
		m := Measured{Side: Side{Key: key, With: with}}
		for _, v := range times {
			m.Rounds = append(m.Rounds, []Point{{N: 4, P50: v}})
		}
		m.Median = medians(m.Rounds)
		return m
	}
	a := of("a", "", 10, 200, 30)
	for _, x := range []struct {
		base Measured
		want float64
	}{
		{of("b", "a", 20, 100, 30), 1},    // 0.5, 2, 1
		{of("b", "", 20, 100, 40), 0.75},  // 30 by 40
		{of("b", "c", 20, 100, 40), 0.75}, // the same
		{of("b", "a", 20, 40), 1},         // 30 by 30
		{of("b", "a", 0, 0, 0), 0},
	} {
		if got := a.multipleOf(&x.base, 4, "p50"); got != x.want {
			t.Errorf("%v by %v: %v instead of %v", a.Rounds, x.base.Rounds, got, x.want)
		}
	}
	if got := a.multipleOf(nil, 4, "p50"); got != 0 {
		t.Error(got)
	}
	b, c := of("b", "a", 1), of("c", "a", 1)
	if !b.sharesProcesses(&c.Side) || !b.sharesProcesses(&a.Side) || !a.sharesProcesses(&b.Side) {
		t.Error("they are together")
	}
}

// TestBcastPlots checks that methods are drawn as thin lines, and that multiples are relative to the median of Open
// MPI.
func TestBcastPlots(t *testing.T) {
	p := bcastReport("bcast-busy", map[string][2]float64{
		"extended-udp": {50, 2000}, "udp-flat": {100, 6000}, "extended-tcp": {1, 1}, "shm-flat": {3, 4},
		openMPITCP: {100, 4000},
	}).drawn()
	var names []string
	for _, name := range []string{"bcast-busy-network", "bcast-busy-memory", "bcast-busy-ratio-network"} {
		if p[name] == nil {
			t.Fatalf("there is no %s in %v", name, p)
		}
		for _, s := range p[name].Series {
			names = append(names, s.Name)
		}
	}
	if len(p) != 3 || strings.Join(names,
		"|") != "zrlmpid, extended, UDP|flat|Open MPI, TCP|flat|zrlmpid, extended, UDP|flat|Open MPI, TCP" {
		t.Errorf("%d plots of %v", len(p), names)
	}
	s := p["bcast-busy-ratio-network"].Series
	if s[0].Kind != chart.Ours || s[1].Kind != chart.Method || s[0].Points[0].Y != 0.5 || s[1].Points[1].Y != 1.5 ||
		s[2].Points[1].Y != 1 {
		t.Errorf("%+v", s)
	}
}
