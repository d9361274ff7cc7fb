package diagnose_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	kit "github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
)

var (
	seeds     = flag.Int("seeds", defaultSeeds, "how many clusters are simulated")
	firstSeed = flag.Uint64("seed", 0, "the first seed")
	show      = flag.String("show", "",
		"log the answers with this verdict: right, listed, silent, missing, wrong or longer; or undecided, in TestDecided")
	write     = flag.Bool("write", false, "write the results to docs/reliability.md and docs/data")
	update    = flag.Bool("update", false, "write testdata/answers.txt")
	witnesses = flag.Bool("witnesses", false, "measure which lists are longer than necessary, as -write does")
)

// defaultSeeds is the default number of clusters. They take about ten seconds.
const defaultSeeds = 600

// few is the minimum number of runs in a group with the same evidence. In a smaller group, a rare cause of that
// evidence has most likely not occurred.
func few() int { return max(minRuns, *seeds/1000) }

const minRuns = 10

// seeks reports whether the test searches for witnesses, which show whether lists of causes are longer than necessary.
func seeks() bool { return *witnesses || *write }

// TestDiagnose checks that no certain answer is wrong, and that at most 1 % of the answers omit the truth. With the
// default seeds, it also compares the numbers of answers with testdata/answers.txt: removing a hypothesis or one of its
// contradictions changes these numbers.
func TestDiagnose(t *testing.T) {
	r := newResults(simulateAll())
	if seeks() {
		r.seekLonger()
	}
	r.compareLists()
	r.log(t)
	if n := r.total.verdicts[wrong]; n > 0 {
		t.Errorf("%d answers are certain and wrong: -show wrong has them", n)
	}
	if n := r.total.verdicts[missing] + r.total.verdicts[silent]; n*100 > r.total.answers() {
		t.Errorf("%d of %d answers are without the truth: -show missing and -show silent have them", n,
			r.total.answers())
	}
	if *write {
		if err := r.write(); err != nil {
			t.Fatal(err)
		}
	}
	if *seeds != defaultSeeds || *firstSeed != 0 {
		return
	}
	const golden = "testdata/answers.txt"
	text := r.golden()
	if *update {
		if err := os.WriteFile(golden, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if string(known) != text {
		t.Errorf("the answers are not those of %s; -update writes them, and the difference is to be looked at:\n%s",
			golden,
			text)
	}
}

// simulateAll simulates the clusters of all seeds, in the first call.
var simulateAll = sync.OnceValue(func() []answer {
	all := make([][]answer, *seeds)
	parallel(*seeds, func(i int) { all[i] = simulate(*firstSeed + uint64(i)) })
	return slices.Concat(all...)
})

// count counts answers.
type count struct {
	verdicts [verdicts]int
	listed   int // number of causes in all lists that contain the truth
}

func (c *count) add(a *answer) {
	c.verdicts[a.verdict]++
	if a.verdict == listed {
		c.listed += len(a.possible)
	}
}

func (c *count) answers() (n int) {
	for _, v := range c.verdicts {
		n += v
	}
	return n
}

// percent returns the percentage of answers with a verdict, or "" if there are no answers.
func (c *count) percent(v verdict) string {
	if c.answers() == 0 {
		return ""
	}
	return fmt.Sprintf("%.0f", 100*float64(c.verdicts[v])/float64(c.answers()))
}

// results holds the answers of all runs and compares them with each other.
type results struct {
	all   []answer
	total count
	// kinds counts answers by fault and vantage.
	kinds map[[2]string]*count
	// truths maps evidence to the classes of causes that produced it, which cannot be distinguished at the vantage.
	// runs maps evidence to the seeds of these runs.
	truths map[string]map[string]bool
	runs   map[string]map[uint64]bool
	// real maps evidence to the labels of all causes that were true in these runs.
	real map[string]map[string]bool
	// Numbers of lists of causes by vantage, among those with enough runs of the same evidence. longer counts the lists
	// with a cause that was true in no such run.
	longer, lists map[string]int
}

func newResults(all []answer) *results {
	r := &results{
		all: all, kinds: map[[2]string]*count{}, truths: map[string]map[string]bool{},
		runs:   map[string]map[uint64]bool{},
		real:   map[string]map[string]bool{},
		longer: map[string]int{}, lists: map[string]int{},
	}
	for i := range all {
		a := &all[i]
		r.total.add(a)
		for _, key := range [][2]string{{string(a.truths[0].fault), a.vantage}, {"", a.vantage}} {
			if r.kinds[key] == nil {
				r.kinds[key] = new(count)
			}
			r.kinds[key].add(a)
		}
		if a.class == "" {
			continue
		}
		if r.truths[a.evidence] == nil {
			r.truths[a.evidence], r.runs[a.evidence] = map[string]bool{}, map[uint64]bool{}
			r.real[a.evidence] = map[string]bool{}
		}
		for _, l := range a.real {
			r.real[a.evidence][l] = true
		}
		r.truths[a.evidence][a.class], r.runs[a.evidence][a.seed] = true, true
	}
	return r
}

// isComparable reports whether at least the given number of runs have the same evidence as an answer.
func (r *results) isComparable(a *answer, runs int) bool {
	return a.class != "" && len(r.runs[a.evidence]) >= runs
}

// compareLists counts the lists with a cause that no run with the same evidence has.
func (r *results) compareLists() {
	for i := range r.all {
		a := &r.all[i]
		if a.verdict != listed || !r.isComparable(a, few()) {
			continue
		}
		r.lists[a.vantage]++
		for _, l := range a.listed {
			if !r.real[a.evidence][l] {
				a.extra = append(a.extra, l)
			}
		}
		if a.extra != nil {
			r.longer[a.vantage]++
		}
	}
}

func (r *results) log(t *testing.T) {
	for i := range r.all {
		a := &r.all[i]
		if *show != "" && (a.verdict.String() == *show || *show == "longer" && a.extra != nil) {
			r.logAnswer(t, a)
		}
	}
	for _, v := range vantageNames {
		if c := r.kinds[[2]string{"", v}]; c != nil {
			t.Logf("%-5s %6d answers: right %d, listed %d, silent %d, missing %d, wrong %d", v, c.answers(),
				c.verdicts[right], c.verdicts[listed], c.verdicts[silent], c.verdicts[missing], c.verdicts[wrong])
			if seeks() {
				t.Logf("      %d of %d lists longer than what cannot be distinguished", r.longer[v], r.lists[v])
			}
		}
	}
}

func (r *results) logAnswer(t *testing.T, a *answer) {
	t.Logf("seed %d, %s, %v, %v at %v from %s; the same evidence has %v, not %q\n%s\n%s", a.seed, a.cluster, a.names,
		a.truths, a.after, a.vantage, slices.Sorted(maps.Keys(r.truths[a.evidence])), a.extra, a.evidence, a.text)
}

// vantageNames lists the vantages in the order in which tables show them.
var vantageNames = []string{"one", "links", "some", "all"}

// vantageTitles maps vantages to their names in tables.
var vantageTitles = map[string]string{"one": "one daemon", "links": "one daemon that asks over its links",
	"some": "daemons, some of which are down", "all": "all daemons"}

// golden returns the numbers of all faults.
func (r *results) golden() string {
	var b strings.Builder
	keys := slices.SortedFunc(maps.Keys(r.kinds), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	for _, k := range keys {
		c := r.kinds[k]
		fmt.Fprintf(&b, "%s, %s: %d right, %d listed of %d causes, %d silent, %d missing, %d wrong\n", k[0], k[1],
			c.verdicts[right],
			c.verdicts[listed], c.listed, c.verdicts[silent], c.verdicts[missing], c.verdicts[wrong])
	}
	return b.String()
}

// page is the page of results.
const page = "../../../docs/reliability.md"

// write writes the totals of each vantage to the page, and the percentages of each fault to its data file.
func (r *results) write() error {
	totals := [][]string{slices.Concat([]string{"vantage"}, kit.Columns, []string{"longer lists"})}
	for _, v := range vantageNames {
		if c := r.kinds[[2]string{"", v}]; c != nil {
			totals = append(totals, slices.Concat([]string{vantageTitles[v]}, kit.Counts(c.verdicts).Cells(), []string{
				fmt.Sprintf("%d of %d", r.longer[v], r.lists[v])}))
		}
	}
	kinds := [][]string{{"injected", "one daemon: right %", "one daemon: list %", "over links: right %",
		"over links: list %", "all daemons: right %", "all daemons: list %", "without the truth", "wrong"}}
	faults := map[string]bool{}
	for k := range r.kinds {
		faults[k[0]] = true
	}
	delete(faults, "")
	for _, f := range slices.Sorted(maps.Keys(faults)) {
		row, lost, bad := []string{f}, 0, 0
		for _, v := range vantageNames {
			c := r.kinds[[2]string{f, v}]
			if c == nil {
				c = new(count)
			}
			lost += c.verdicts[missing] + c.verdicts[silent]
			bad += c.verdicts[wrong]
			if v != "some" {
				row = append(row, c.percent(right), c.percent(listed))
			}
		}
		kinds = append(kinds, append(row, fmt.Sprint(lost), fmt.Sprint(bad)))
	}
	title := fmt.Sprintf("%d clusters (`make diagnose SEEDS=%d`), %d answers", *seeds, *seeds, r.total.answers())
	return kit.Write(page, "diagnose", title, totals, kinds)
}
