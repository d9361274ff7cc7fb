package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

// pretence starts fake clusters. A function returns how long their calls take in µs.
type pretence struct {
	t      *testing.T
	takes  func(transport string, ranks, round int, j job) (float64, error)
	rounds map[string]int // how often each job ran
	log    []string
	open   int
}

type pretended struct {
	*pretence
	transport string
	ranks     int
}

func (p *pretence) launch(_ context.Context, transport string, ranks int) (measurer, error) {
	if p.open++; p.open > 1 {
		p.t.Error("two clusters at a time")
	}
	p.log = append(p.log, fmt.Sprintf("%s %d:", transport, ranks))
	return &pretended{p, transport, ranks}, nil
}

func (c *pretended) close() { c.open-- }

func (c *pretended) measure(ctx context.Context, j job) ([]int64, error) {
	key := fmt.Sprint(c.transport, c.ranks, j.Collective, j.By, j.Bytes)
	if j.Iterations > 1 {
		c.rounds[key]++
		c.log = append(c.log, fmt.Sprintf("%s %v %d", j.Collective, j.By, j.Bytes))
	}
	us, err := c.takes(c.transport, c.ranks, c.rounds[key], j)
	if err != nil {
		return nil, err
	}
	// One call takes much longer than the others, as happens on real machines.
	nanos := slices.Repeat([]int64{int64(us * 1000)}, j.Iterations)
	if len(nanos) > 1 {
		nanos[0] *= 100
	}
	return nanos, ctx.Err()
}

func pretend(t *testing.T, o Options,
	takes func(transport string, ranks, round int, j job) (float64, error)) (*pretence, *tuner, []coll.Collective) {
	t.Helper()
	p := &pretence{t: t, takes: takes, rounds: map[string]int{}}
	tn := &tuner{Options: o, out: &strings.Builder{}, launch: p.launch, links: map[string]collectives.Link{}}
	all, err := tn.setDefaults()
	if err != nil {
		t.Fatal(err)
	}
	return p, tn, all
}

// byFormula returns a time in which a message takes 1 µs plus 1 ns per byte, and a tenth of that in memory.
func byFormula(transport string, ranks, _ int, j job) (float64, error) {
	of, err := collectives.ParseName(j.Collective)
	if err != nil {
		return 0, err
	}
	a, err := coll.Find(of, j.By.Algorithm)
	if err != nil {
		return 0, err
	}
	call := coll.Call{Collective: of, Ranks: ranks, Bytes: j.Bytes, Elem: elemLen, Segment: j.By.Segment, Flows: true}
	if sharesMemory[transport] {
		call.Shared = shm.SharedHalf
	}
	c, err := a.Cost(call)
	us := c.Time(1, 0.001, 0.0005)
	if transport == "shm" {
		us /= 10
	}
	return us, err
}

// networkEntries returns the entries for ranks that do not share memory, whatever the number of cores.
func networkEntries(d *collectives.Document) (list []collectives.Entry) {
	for _, t := range []*collectives.ClassTable{d.Network, d.OversubscribedNetwork} {
		if t != nil {
			list = append(list, t.Collectives...)
		}
	}
	return list
}

// TestTable checks that the table contains the measurements, and chooses the fastest algorithm.
func TestTable(t *testing.T) {
	_, tn, all := pretend(t, Options{Rounds: 3, Ranks: []int{2, 8}, MaxBytes: 1 << 20}, byFormula)
	r, err := tn.run(t.Context(), t.Context(), all)
	if err != nil || r.Err() != nil || r.TimedOut {
		t.Fatalf("%v, %+v", err, r)
	}
	d := r.Table.Document()
	if m := d.Measured; m.Rounds != 3 || m.Cores < 1 || m.System == "" || m.Time == "" {
		t.Errorf("%+v", m)
	}
	entries := 0
	d.ForEachClass(func(class choice.Class, table *collectives.ClassTable) {
		over, link := "udp", collectives.Link{Alpha: 1000, Beta: 1}
		if class == choice.Memory || class == choice.OversubscribedMemory {
			over, link = "shm", collectives.Link{Alpha: 100, Beta: 0.1}
		}
		if l := table.Link; table.Transport != over || math.Abs(l.Alpha/link.Alpha-1) > 0.01 ||
			math.Abs(l.Beta/link.Beta-1) > 0.01 {
			t.Errorf("%s: over %s, %+v", class, table.Transport, l)
		}
		oversubscribed := class == choice.OversubscribedMemory || class == choice.OversubscribedNetwork
		for i, e := range table.Collectives {
			if oversubscribed != (e.Ranks > d.Measured.Cores) ||
				i > 0 && e.Collective < table.Collectives[i-1].Collective {
				t.Errorf("%s: entry %d is %v of %d ranks", class, i, e.Collective, e.Ranks)
			}
		}
		entries += len(table.Collectives)
	})
	if entries != 2*2*int(coll.Exscan) {
		t.Errorf("%d entries", entries)
	}
	// The table agrees with the formulas.
	class := choice.ClassOf(false, 8 > d.Measured.Cores)
	link := (*d.Class(class)).Link
	for _, n := range []int{8, 1 << 20} {
		c := coll.Call{Collective: coll.Allreduce, Ranks: 8, Bytes: n, Elem: 4}
		want, err := collcheck.Choose(c, 1, 0.001, 0.0005)
		if got := r.Table.Choose(class, &c); err != nil || got.Algorithm != want.Name {
			t.Errorf("%d bytes: %v, want %s, %v", n, got, want.Name, err)
		}
	}
	long := coll.Call{Collective: coll.Scan, Ranks: 8, Bytes: 1 << 20, Elem: 4}
	if got := r.Table.Choose(class, &long); got.Algorithm != "chain" ||
		got.Segment != coll.PipelineSegment(8, 1<<20, 4, link.Alpha, link.Beta) {
		t.Errorf("%v", got)
	}
}

// TestRounds checks that each round starts new clusters and measures all choices for one length in sequence, and that
// medians are taken over all rounds.
func TestRounds(t *testing.T) {
	takes := func(_ string, _, round int, j job) (float64, error) {
		return map[string][]float64{"dissemination": {1, 30, 40, 50}, "toggle": {1, 25, 24, 90},
			"binomial": {1, 1, 1, 1}}[j.By.Algorithm][round], nil
	}
	p, tn, all := pretend(t,
		Options{Transports: []string{"tcp"}, Ranks: []int{100, 2}, Rounds: 3, Collectives: []string{"barrier"}}, takes)
	r, err := tn.run(t.Context(), t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	link := []string{"tcp 2:"}
	for _, n := range linkLengths {
		link = append(link, fmt.Sprintf("bcast binomial %d", n))
	}
	round := []string{"tcp 2:", "barrier dissemination 0", "barrier toggle 0", "tcp 100:", "barrier dissemination 0",
		"barrier toggle 0"}
	if want := slices.Concat(link, round, round, round); !slices.Equal(p.log, want) || p.open != 0 {
		t.Errorf("%d are open, and it went\n%q, want\n%q", p.open, p.log, want)
	}
	e := networkEntries(r.Table.Document())[0]
	if e.Medians[0].Micros[0] != 40 || e.Medians[1].Micros[0] != 25 || e.Decisions[0].Choices[0].Algorithm != "toggle" ||
		r.Table.Document().Memory != nil {
		t.Errorf("%+v", e)
	}
	if out := tn.out.(*strings.Builder).String(); !strings.Contains(out, "[6/6") ||
		!strings.Contains(out, "round 3 of 3: tcp, 100 ranks (") ||
		!strings.Contains(out, " cores: they take turns): 2 measurements\n") {
		t.Error(out)
	}
}

// TestFailure checks that a failure is reported and that the measurement is not tried again, and that a new cluster
// measures the rest.
func TestFailure(t *testing.T) {
	bad := errors.New("word 3 is 4 instead of 5")
	takes := func(tr string, n, round int, j job) (float64, error) {
		if j.By.Algorithm == "flat" && j.Bytes == 32 && round == 2 {
			return 0, bad
		}
		return byFormula(tr, n, round, j)
	}
	p, tn, all := pretend(t,
		Options{Transports: []string{"udp"}, Ranks: []int{4}, Rounds: 3, Collectives: []string{"gather"},
			MaxBytes: 128}, takes)
	r, err := tn.run(t.Context(), t.Context(), all)
	if err != nil {
		t.Fatal(err)
	}
	const want = "udp, 4 ranks: gather of 32 by flat: word 3 is 4 instead of 5"
	if err := r.Err(); err == nil || err.Error() != "failed: "+want || !slices.Equal(r.Failed, []string{want}) ||
		p.open != 0 {
		t.Errorf("%v, %q", err, r.Failed)
	}
	if out := tn.out.(*strings.Builder).String(); !strings.Contains(out, "*** FAILED: "+want+" ***") {
		t.Error(out)
	}
	e := networkEntries(r.Table.Document())[0]
	if !slices.Equal(e.Bytes, []int{8, 32}) || e.Medians[0].Micros[0] == 0 || e.Medians[0].Micros[1] != 0 ||
		e.Medians[1].Micros[1] == 0 {
		t.Errorf("%+v", e)
	}
	// If all measurements of a collective fail, the table has no entry for the collective.
	_, tn, all = pretend(t, Options{Transports: []string{"udp"}, Ranks: []int{4},
		Collectives: []string{"gather", "scan"}, MaxBytes: 8}, func(tr string, n, round int, j job) (float64, error) {
		if j.Collective == "gather" {
			return 0, bad
		}
		return byFormula(tr, n, round, j)
	})
	if r, err = tn.run(t.Context(), t.Context(), all); err != nil || len(r.Failed) != 2 ||
		len(networkEntries(r.Table.Document())) != 1 {
		t.Errorf("%v, %+v", err, r)
	}
}

// TestLimit checks that the rounds that are complete at the deadline count, if there are any.
func TestLimit(t *testing.T) {
	for _, x := range []struct {
		until  string // the deadline expires after this job
		rounds int
	}{{"binomial 8 0", 0}, {"toggle 0 1", 0}, {"toggle 0 2", 1}, {"toggle 0 3", 2}} {
		limited, over := context.WithCancel(t.Context())
		takes := func(_ string, ranks, round int, j job) (float64, error) {
			if fmt.Sprint(j.By, " ", j.Bytes, " ", round) == x.until && ranks == 2 {
				over()
			}
			return 10, nil
		}
		p, tn, all := pretend(t,
			Options{Transports: []string{"udp"}, Ranks: []int{2, 4}, Rounds: 3, Collectives: []string{"barrier"}},
			takes)
		r, err := tn.run(t.Context(), limited, all)
		over()
		if p.open != 0 {
			t.Errorf("%s: a cluster is open", x.until)
		}
		switch {
		case x.rounds == 0 && (!errors.Is(err, ErrLimit) || r != nil):
			t.Errorf("%s: %v, %v", x.until, r, err)
		case x.rounds > 0 && (err != nil || !r.TimedOut || r.Table.Document().Measured.Rounds != x.rounds):
			t.Errorf("%s: %+v, %v", x.until, r, err)
		}
	}
}

// TestCancelled checks that a run that is interrupted has no report.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	p, tn, all := pretend(t, Options{Quick: true}, func(tr string, n, round int, j job) (float64, error) {
		if j.Collective == "scan" {
			cancel()
		}
		return byFormula(tr, n, round, j)
	})
	if r, err := tn.run(ctx, ctx, all); !errors.Is(err, context.Canceled) || r != nil || p.open != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestTimeLeft checks the estimate of the remaining time.
func TestTimeLeft(t *testing.T) {
	g := func(cells, ranks int, took time.Duration) *group {
		return &group{ranks: ranks, cells: make([]*cell, cells), took: took}
	}
	one, two := g(10, 2, 2*time.Second), g(20, 4, 0)
	tn := &tuner{Options: Options{Rounds: 3, Limit: time.Hour}, groups: []*group{one, two}}
	for _, x := range []struct {
		now   *group
		round int
		want  time.Duration
	}{{two, 0, (2*2 + 3*8) * time.Second}, {one, 1, (2*2 + 2*8) * time.Second}, {two, 2, 8 * time.Second}} {
		if got := tn.estimateRemaining(x.now, x.round); got != x.want {
			t.Errorf("round %d: %v, want %v", x.round, got, x.want)
		}
	}
	if tn.Limit = time.Second; tn.estimateRemaining(two, 0) != time.Second {
		t.Error("it takes longer than it may")
	}
	one.took = 0
	if got := tn.estimateRemaining(one, 0); got != 0 {
		t.Errorf("nothing is known, but %v", got)
	}
}
