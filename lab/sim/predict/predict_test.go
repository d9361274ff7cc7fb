package predict_test

import (
	"context"
	"errors"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/lab/sim/network"
	"github.com/zrlmpi/zrlmpid/lab/sim/predict"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

func load(t testing.TB, text string) *predict.Description {
	t.Helper()
	d, err := predict.Load(strings.NewReader(text), "c.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestEngineLimits checks that the model and the engine have the same constants.
func TestEngineLimits(t *testing.T) {
	if got := predict.SoftwareParameters().Memory.Eager; got != shm.MinSingleCopy {
		t.Errorf("messages in memory of up to %d bytes are eager, the engine's up to %d", got, shm.MinSingleCopy)
	}
	c := network.Cluster{Ranks: 2, PerHost: 2}
	if got := c.SharedBytes(); got != shm.SharedHalf {
		t.Errorf("shared buffers have %d bytes for a call, the engine's %d", got, shm.SharedHalf)
	}
}

// table returns a table for a machine with 2 cores, in which times from the model take the place of measurements.
func table(t *testing.T, p network.Parameters) *collectives.Document {
	t.Helper()
	d := &collectives.Document{Version: collectives.Version, Measured: collectives.Measured{Cores: 2}}
	for _, ranks := range []int{2, 4, 8} {
		for _, memory := range []bool{true, false} {
			c := network.Cluster{Ranks: ranks, PerHost: ranks, Loopback: !memory, Barrier: true, Parameters: p}
			if ranks > 2 {
				c.Cores = 2
			}
			class := d.Class(choice.ClassOf(memory, ranks > 2))
			if *class == nil {
				*class = &collectives.ClassTable{Link: collectives.Link{Alpha: 1000, Beta: 1}}
			}
			for _, of := range []coll.Collective{coll.Barrier, coll.Bcast, coll.Allreduce, coll.Gather} {
				e := collectives.Entry{Collective: collectives.Collective(of), Ranks: ranks,
					Bytes: []int{8, 1024, 65536}}
				for _, a := range coll.Algorithms(of) {
					s := collectives.Series{Choice: choice.Choice{Algorithm: a.Name}}
					for _, n := range e.Bytes {
						r, err := c.Run(a, coll.Call{Collective: of, Bytes: n, Elem: 4, Flows: true})
						if err != nil && !errors.Is(err, coll.ErrCall) {
							t.Fatal(err)
						}
						s.Micros = append(s.Micros, r.Nanoseconds/1000)
					}
					if s.Micros[0] > 0 {
						e.Medians = append(e.Medians, s)
					}
				}
				e.Decide(1)
				(*class).Collectives = append((*class).Collectives, e)
			}
		}
	}
	return d
}

// TestFit checks that a fit to times from the model predicts these times closely. If ranks share cores, calls with a
// single number of ranks do not determine all parameters of calls and time slices.
func TestFit(t *testing.T) {
	p := predict.SoftwareParameters()
	p.Host = network.Host{Call: 900, Copy: 0.05, Reduce: 0.5, Publish: 250, Visible: 100, Switch: 1500}
	p.Memory.Latency, p.Memory.Overhead, p.Memory.OverheadByte = 400, 250, 0.2
	p.Network.Latency, p.Network.Overhead, p.Network.OverheadByte, p.Network.GapByte = 3000, 4000, 0.4, 0
	fits, err := predict.Fits(t.Context(), table(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if len(fits) != 4 {
		t.Fatalf("%d classes", len(fits))
	}
	c := predict.Compare(fits)
	for _, f := range fits {
		shares := f.Class == choice.OversubscribedMemory || f.Class == choice.OversubscribedNetwork
		if f.Deviation > 0.03 && !shares || f.Deviation > 0.08 || f.FittedRanks != 4 {
			t.Errorf("%s: deviation %v with up to %d ranks", f.Class, f.Deviation, f.FittedRanks)
		}
	}
	for _, o := range c.Comparisons {
		shares := o.Ranks > 2
		if o.NearBest != o.Cases || o.Worst > 1.05 || o.Fitted != (o.Ranks <= 4) ||
			!shares && (o.Low < 0.9 || o.High > 1.1) {
			t.Errorf("%+v", o)
		}
	}
	if want := 6 * 12; c.Total.Cases != want || c.Total.NearBest != want {
		t.Errorf("%+v", c.Total)
	}
	again, err := predict.Fits(t.Context(), table(t, p))
	if err != nil || !reflect.DeepEqual(again, fits) {
		t.Errorf("%v: another fit is different", err)
	}
}

func TestFitErrors(t *testing.T) {
	if _, err := predict.Fits(t.Context(), &collectives.Document{Version: 1}); !errors.Is(err, predict.ErrNotMeasured) {
		t.Error(err)
	}
	d := table(t, predict.SoftwareParameters())
	d.Estimated = true
	if _, err := predict.Fits(t.Context(), d); !errors.Is(err, predict.ErrNotMeasured) {
		t.Errorf("estimated: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := predict.Fits(ctx, table(t, predict.SoftwareParameters())); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestCompare checks that a comparison uses the measured time of the choice that is fastest in the model.
func TestCompare(t *testing.T) {
	f := &predict.Fit{Class: choice.Network, FittedRanks: 4, Cases: []predict.Case{
		{Ranks: 4, By: make([]choice.Choice, 2), Measured: []float64{100, 120}, Predicted: []float64{30, 24}},
		{Ranks: 8, By: make([]choice.Choice, 2), Measured: []float64{100, 200}, Predicted: []float64{300, 200}},
	}}
	c := predict.Compare([]*predict.Fit{f})
	near, far := c.Comparisons[0], c.Comparisons[1]
	if near.NearBest != 1 || near.Worst != 1.2 || !near.Fitted || near.Low != 0.2 || near.High != 0.3 {
		t.Errorf("%+v", near)
	}
	if far.NearBest != 0 || far.Worst != 2 || far.Fitted || far.Low != 1 || far.High != 3 {
		t.Errorf("%+v", far)
	}
	if c.Total.Cases != 2 || c.Total.NearBest != 1 || c.Total.Median != 0.3 {
		t.Errorf("%+v", c.Total)
	}
}

// TestChoose checks that no choice is slower in the model than the choice of the built-in table, at the lengths for
// which the table was made. At lengths between these, the sum over all choices is not slower either.
func TestChoose(t *testing.T) {
	for _, text := range []string{
		"{ranks: 16}",
		"{ranks: 24, hosts: 6, cores: 2}",
		"{ranks: 16, hosts: 1}",
		"{ranks: 12, hosts: 1, cores: 2}",
		"{ranks: 32, hosts: 16, switches: 4, link: {latency: 2us, gbps: 100}, uplink: {gbps: 40}, overhead: 1us}",
	} {
		d := load(t, text)
		table, all, err := predict.Choose(t.Context(), d, nil)
		if err != nil {
			t.Fatal(err)
		}
		var sum, builtIn float64
		for _, c := range all {
			if c.Nanoseconds > c.BuiltInNanoseconds || c.Nanoseconds <= 0 {
				t.Errorf("%s: %+v", text, c)
			}
			sum, builtIn = sum+c.Nanoseconds, builtIn+c.BuiltInNanoseconds
		}
		if sum >= builtIn {
			t.Errorf("%s: nothing is better than the built-in table", text)
		}
		between(t, d, table)
	}
}

// between compares a table with the built-in table at lengths for which it was not made.
func between(t *testing.T, d *predict.Description, table *collectives.Table) {
	t.Helper()
	c := d.Cluster(d.Ranks, nil)
	class := choice.ClassOf(c.SharesMemory(), c.Oversubscribed())
	var sum, builtIn float64
	for of := coll.Bcast; of <= coll.Exscan; of++ {
		for _, n := range []int{24, 200, 2000, 9000, 40_000} {
			call := coll.Call{Collective: of, Ranks: d.Ranks, Bytes: n, Elem: 4, Flows: true, Shared: c.SharedBytes()}
			for _, x := range []struct {
				table *choice.Table
				sum   *float64
			}{{table.Table, &sum}, {choice.Default(), &builtIn}} {
				by := x.table.Choose(class, &call)
				a, err := coll.Find(of, by.Algorithm)
				if err != nil {
					t.Fatal(err)
				}
				with := call
				with.Segment = by.Segment
				r, err := c.Run(a, with)
				if err != nil {
					t.Fatal(err)
				}
				*x.sum += r.Nanoseconds
			}
		}
	}
	if sum > builtIn {
		t.Errorf("%d ranks, class %s: %v ns at lengths between, with the built-in table %v", d.Ranks, class, sum,
			builtIn)
	}
}

// TestTable checks that a table covers the classes of communicators of all sizes, and is the same when it is written
// and read back.
func TestTable(t *testing.T) {
	table, _, err := predict.Choose(t.Context(), load(t, "{ranks: 12, hosts: 3, cores: 2}"), nil)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	again, err := collectives.Load(strings.NewReader(b.String()), "t.yaml")
	if err != nil || again.Hash() != table.Hash() {
		t.Errorf("%v", err)
	}
	rows := table.Rows()
	for class, ranks := range map[choice.Class][]int{choice.OversubscribedMemory: {2, 4},
		choice.OversubscribedNetwork: {8, 12}} {
		var got []int
		for _, r := range rows[class].Rows {
			if r.Collective == coll.Allreduce {
				got = append(got, r.Ranks)
			}
		}
		if !slices.Equal(got, ranks) {
			t.Errorf("%s: rows for %v ranks, want %v", class, got, ranks)
		}
	}
}

func TestUpstream(t *testing.T) {
	by, all, err := predict.ChooseUpstream(t.Context(), load(t, "{ranks: 33, engine: fpga}"))
	if err != nil || by != "tree" || len(all) == 0 {
		t.Errorf("%v, %v", by, err)
	}
	// With two FPGAs, a tree has one hop more.
	if by, _, err := predict.ChooseUpstream(t.Context(), load(t, "{ranks: 3, engine: fpga}")); err != nil ||
		by != "flat" {
		t.Errorf("%v, %v", by, err)
	}
	if _, _, err := predict.Choose(t.Context(), load(t, "{ranks: 33, engine: fpga}"), nil); !errors.Is(err,
		predict.ErrFPGA) {
		t.Error(err)
	}
}

// TestMeasuredParameters checks that measured parameters come from the class that resembles the cluster, while the
// parameters of the link come from the cluster.
func TestMeasuredParameters(t *testing.T) {
	fit := func(class choice.Class, n float64) *predict.Fit {
		f := &predict.Fit{Class: class, Parameters: predict.SoftwareParameters()}
		f.Parameters.Host.Call, f.Parameters.Host.Switch, f.Parameters.Memory.Overhead,
			f.Parameters.Network.Overhead = n, n, n, n
		return f
	}
	fits := []*predict.Fit{fit(choice.Memory, 1), fit(choice.Network, 2), fit(choice.OversubscribedMemory, 3),
		fit(choice.OversubscribedNetwork, 4)}
	for _, x := range []struct {
		text                          string
		fits                          []*predict.Fit
		call, change, memory, network float64
	}{
		{"{ranks: 8}", fits, 2, 4, 1, 2},
		{"{ranks: 8, hosts: 2}", fits, 1, 3, 1, 2},
		{"{ranks: 8, hosts: 2, cores: 2}", fits, 3, 3, 3, 4},
		{"{ranks: 8, hosts: 2, cores: 2}", fits[:2], 1, 2700, 1, 2},
		{"{ranks: 8, overhead: 9ns}", fits, 2, 4, 1, 9},
		{"{ranks: 8}", nil, 300, 2700, 400, 2500},
	} {
		c := load(t, x.text).Cluster(8, x.fits)
		if c.Host.Call != x.call || c.Host.Switch != x.change || c.Memory.Overhead != x.memory ||
			c.Network.Overhead != x.network || c.Network.Latency != 10_000 {
			t.Errorf("%s: %+v", x.text, c)
		}
	}
}

func TestScale(t *testing.T) {
	q := predict.Request{Cluster: predict.DefaultDescription(2), Collectives: []coll.Collective{coll.Barrier, coll.Bcast},
		Ranks: []int{2, 8192}, Bytes: []int{8, 64 << 10}}
	points, err := predict.Scale(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	most := map[string]int{}
	for _, p := range points {
		most[p.By.Algorithm] = max(most[p.By.Algorithm], p.Ranks)
		if p.Nanoseconds <= 0 || math.IsNaN(p.Nanoseconds) || p.Events == 0 {
			t.Errorf("%+v", p)
		}
	}
	for name, ranks := range map[string]int{"dissemination": 8192, "binomial": 8192, "scatter-allgather": 2,
		"flat": 8192, "chain": 2, "shared": 0, "tree": 0} {
		if most[name] != ranks {
			t.Errorf("%s is predicted for up to %d ranks, want %d", name, most[name], ranks)
		}
	}
	if again, err := predict.Scale(t.Context(), q); err != nil || !reflect.DeepEqual(again, points) {
		t.Errorf("%v: the same parameters have another result", err)
	}
	q.Ranks = []int{1}
	if _, err := predict.Scale(t.Context(), q); !errors.Is(err, network.ErrCluster) {
		t.Error(err)
	}
}

// TestScaleFPGA checks that algorithms in which FPGAs would execute several steps at a time are not predicted.
func TestScaleFPGA(t *testing.T) {
	q := predict.Request{Cluster: load(t, "{ranks: 9, engine: fpga}"), Ranks: []int{3, 9}, Bytes: []int{8, 4096}}
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		q.Collectives = append(q.Collectives, of)
	}
	points, err := predict.Scale(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range points {
		if name := choice.CollectiveName(coll.Collective(p.Collective)) + " " + p.By.String(); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	want := []string{
		"barrier toggle", "bcast flat", "bcast chain", "bcast tree", "reduce flat", "reduce tree", "allreduce flat",
		"gather flat", "gather tree",
		"scatter flat", "scatter tree", "scan chain", "exscan chain",
	}
	if !slices.Equal(names, want) {
		t.Errorf("%v, want %v", names, want)
	}
}

func TestLogarithmic(t *testing.T) {
	var names []string
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, a := range coll.Algorithms(of) {
			if predict.Logarithmic(a) {
				names = append(names, choice.CollectiveName(of)+" "+a.Name)
			}
		}
	}
	for _, name := range []string{"barrier dissemination", "bcast binomial", "allreduce recursive-doubling",
		"allreduce rabenseifner", "reduce binomial", "scan doubling", "allgather bruck",
		"reduce_scatter recursive-halving"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not, of %v", name, names)
		}
	}
	for _, name := range []string{"alltoall pairwise", "alltoall bruck", "allreduce ring", "bcast chain"} {
		if slices.Contains(names, name) {
			t.Errorf("%s is", name)
		}
	}
}

func TestDescriptionErrors(t *testing.T) {
	for _, x := range []struct{ text, want string }{
		{"{}", "c.yaml:1: ranks: 0 is outside 2 to 65536"},
		{"{ranks: 4, hosts: 5}", "c.yaml:1: hosts: 5 is outside 1 to 4"},
		{"{ranks: 4, cores: -1}", "c.yaml:1: cores: -1 is outside 0 to 65536"},
		{"{ranks: 4, switches: 5}", "c.yaml:1: switches: 5 is outside 1 to 4"},
		{"{ranks: 4, engine: fpgs}",
			`c.yaml:1: engine: "fpgs" is not known (did you mean "fpga"?): there are software, fpga`},
		{"{ranks: 4, hosts: 2, engine: fpga}", "c.yaml:1: hosts: each FPGA is a host of its own: leave it out"},
		{"{ranks: 2, engine: fpga}", "c.yaml:1: ranks: 2 ranks: with FPGAs, there are at least two of them and rank 0"},
		{"{ranks: 4, link: {latency: 2s}}", "c.yaml:1: link.latency: 2s is outside 0 to 1s"},
		{"{ranks: 4, uplink: {gbps: -1}}", "c.yaml:1: uplink.gbps: -1 is outside 0.001 to 100000"},
		{"{ranks: 4, overhead: -1us}", "c.yaml:1: overhead: -1µs is outside 0 to 1s"},
		{"{rank: 4}", `c.yaml:1: unknown key "rank" (did you mean "ranks"?)`},
	} {
		_, err := predict.Load(strings.NewReader(x.text), "c.yaml")
		if err == nil || !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%s: %v, want %s", x.text, err, x.want)
		}
		if _, ok := errors.AsType[*strictyaml.Error](err); !ok {
			t.Errorf("an error of type %T", err)
		}
	}
}
