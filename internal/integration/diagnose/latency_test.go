package diagnose_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	kit "github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
)

// To measure the latency of a diagnosis, the test asks every latencyStep until latencyLimit after the fault first took
// effect. It does so for one cluster in latencyShare.
const (
	latencyStep  = 50 * time.Millisecond
	latencyLimit = 6 * time.Second
	latencyShare = 6
)

// hang is a hang as diagnosed at one vantage. It starts when the fault has taken effect and the call that hangs has
// begun.
type hang struct {
	ranks []int         // the ranks of the vantage whose calls hang
	start time.Duration // on the clock of the cluster
	// toTruth is the time from start to the first answer that contains the truth, and toRight to the first answer that
	// is right. A time is 0 if there is no such answer.
	toTruth, toRight time.Duration
}

// asker asks at a vantage whether and why any of the given ranks hangs.
type asker func(name string, ranks []int, v func() vantage)

// hangsOf simulates the cluster of a seed, and returns its hangs by vantage. Each rank that questions the others does
// so in a separate run, because its questions take time and add packets.
func hangsOf(seed uint64) map[string][]*hang {
	found := map[string][]*hang{}
	measure := func(look func(c *cluster, ask asker)) {
		c := prepare(seed)
		_, truths := c.inject()
		c.measure(truths, look, found)
	}
	measure(func(c *cluster, ask asker) {
		for _, v := range c.vantages() {
			ask(v.name, v.ranks, func() vantage { return v })
		}
	})
	for rank := range prepare(seed).nodes {
		measure(func(c *cluster, ask asker) {
			if n := c.nodes[rank]; c.asks(n) {
				ask("links", []int{rank}, func() vantage { return c.asking(n) })
			}
		})
	}
	return found
}

// measure runs a cluster, calls look at each step, and adds the hangs that last until the end to found.
func (c *cluster) measure(truths []truth, look func(c *cluster, ask asker), found map[string][]*hang) {
	if !c.runToFault() {
		return
	}
	start := func(ranks []int) (time.Duration, bool) {
		since, waits := c.waitAt(ranks, diagnosis.MinWaitAge)
		return max(since, c.trigger), waits
	}
	type place struct{ vantage, ranks string }
	hangs := map[place]*hang{}
	for end := c.trigger + latencyLimit; c.now < end; {
		c.run(c.now+latencyStep, func() bool { return false })
		look(c, func(name string, ranks []int, v func() vantage) {
			started, waits := start(ranks)
			if !waits {
				return
			}
			at := place{name, fmt.Sprint(ranks)}
			h := hangs[at]
			if h == nil || h.start != started { // the wait of h did not last
				h = &hang{ranks: ranks, start: started}
				hangs[at] = h
			}
			if h.toRight == 0 {
				h.ask(c, truths, v())
			}
		})
	}
	for at, h := range hangs {
		if started, waits := start(h.ranks); waits && started == h.start {
			found[at.vantage] = append(found[at.vantage], h)
		}
	}
}

// ask diagnoses the hang, and records the time of the first answers with the truth.
func (h *hang) ask(c *cluster, truths []truth, v vantage) {
	a := answer{truths: truths}
	c.score(&a, v)
	after := c.now - h.start
	if a.verdict == right {
		h.toRight = after
	}
	if h.toTruth == 0 && (a.verdict == right || a.verdict == listed) {
		h.toTruth = after
	}
}

// latency describes the time from hangs to their first answers of a kind.
type latency struct {
	answered        int // number of hangs with such an answer
	median, slowest time.Duration
}

// latencyOf returns the latency of hangs. The slowest 5 % of the answers take longer than the field slowest.
func latencyOf(hangs []*hang, to func(h *hang) time.Duration) (l latency) {
	var all []time.Duration
	for _, h := range hangs {
		if d := to(h); d > 0 {
			all = append(all, d)
		}
	}
	if l.answered = len(all); l.answered > 0 {
		slices.Sort(all)
		l.median, l.slowest = all[(len(all)-1)/2], all[(len(all)*95+99)/100-1]
	}
	return l
}

func (l latency) cells() []string {
	seconds := func(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
	return []string{fmt.Sprint(l.answered), seconds(l.median), seconds(l.slowest)}
}

// TestLatency measures the time from a hang to the first answer that contains the truth, and to the first right one.
// It checks that nearly all hangs have an answer with the truth, and how soon.
func TestLatency(t *testing.T) {
	clusters := *seeds / latencyShare
	all := make([]map[string][]*hang, clusters)
	parallel(clusters, func(i int) { all[i] = hangsOf(*firstSeed + uint64(i)) })
	table := [][]string{{"vantage", "hangs", "truth", "median", "95 %", "right", "median", "95 %"}}
	for _, v := range vantageNames {
		var hangs []*hang
		for _, of := range all {
			hangs = append(hangs, of[v]...)
		}
		if v == "some" || len(hangs) == 0 {
			continue
		}
		truth := latencyOf(hangs, func(h *hang) time.Duration { return h.toTruth })
		first := latencyOf(hangs, func(h *hang) time.Duration { return h.toRight })
		row := slices.Concat([]string{vantageTitles[v], fmt.Sprint(len(hangs))}, truth.cells(), first.cells())
		table = append(table, row)
		t.Log(row)
		if truth.answered*100 < len(hangs)*97 {
			t.Errorf("%s: the answers about %d of %d hangs have no truth", v, len(hangs)-truth.answered, len(hangs))
		}
		if truth.median > maxMedian || first.median > maxMedian {
			t.Errorf("%s: the median of the first answers is %v and %v, more than %v", v, truth.median, first.median,
				maxMedian)
		}
		if truth.slowest > maxToTruth || first.slowest > maxToRight {
			t.Errorf("%s: 95 %% of the first answers take %v and %v, more than %v and %v", v, truth.slowest,
				first.slowest, maxToTruth, maxToRight)
		}
	}
	if *write {
		title := fmt.Sprintf("%d clusters, asked every %v", clusters, latencyStep)
		if err := kit.WriteTable(page, "latency", title, table); err != nil {
			t.Fatal(err)
		}
	}
}

// Upper bounds for the median of all latencies, and for 95 % of the first answers with the truth and of the first right
// answers.
const (
	maxMedian  = 1100 * time.Millisecond
	maxToTruth = 2 * time.Second
	maxToRight = 5 * time.Second
)
