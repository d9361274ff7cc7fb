package tune

import (
	"bytes"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config/collectives"
	"github.com/zrlmpi/zrlmpid/lab/sim/predict"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// TestShipped checks that shipped.yaml has the format that Write uses, contains times of all collectives, and agrees
// with the engine's built-in table.
func TestShipped(t *testing.T) {
	table := Shipped()
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), shipped) {
		t.Error("shipped.yaml differs from the output of Write: generate it with zrlbench tune")
	}
	has := map[collectives.Collective]int{}
	table.Document().ForEachClass(func(class choice.Class, from *collectives.ClassTable) {
		for _, e := range from.Collectives {
			has[e.Collective]++
			if len(e.Medians) == 0 {
				t.Errorf("%s: %v of %d ranks has no medians", class, choice.CollectiveName(coll.Collective(e.Collective)),
					e.Ranks)
			}
		}
	})
	for c := coll.Barrier; c <= coll.Exscan; c++ {
		if has[collectives.Collective(c)] < 3 {
			t.Errorf("%v has %d entries", c, has[collectives.Collective(c)])
		}
	}
	if rows := table.Rows(); !reflect.DeepEqual(rows, choice.Measured()) {
		t.Errorf("the built-in table has other decisions. Replace mpe/coll/choice/measured.go by this, and "+
			"format it:\n%s", source(rows))
	}
}

// TestModel checks that the model of lab/sim/network, fitted to calls of 4 ranks, predicts an almost optimal algorithm
// for 354 of 374 measured calls. docs/papers.md contains these figures.
func TestModel(t *testing.T) {
	fits, err := predict.Fits(t.Context(), Shipped().Document())
	if err != nil {
		t.Fatal(err)
	}
	c := predict.Compare(fits)
	for _, o := range append(c.Comparisons, c.Total) {
		t.Logf("%s, %d ranks: %d of %d within %v times the best, %.2f times at worst; predicted by measured %.2f, "+
			"%.2f, %.2f",
			o.Class, o.Ranks, o.NearBest, o.Cases, predict.NearRatio, o.Worst, o.Low, o.Median, o.High)
	}
	if c.Total.NearBest*100 < c.Total.Cases*93 {
		t.Errorf("only %d of %d are within %v times the best", c.Total.NearBest, c.Total.Cases, predict.NearRatio)
	}
}

// source returns the source text of measured.go.
func source(rows map[choice.Class]choice.Rows) string {
	var b strings.Builder
	fmt.Fprintf(&b, "package choice\n\nimport (\n\"math\"\n\n\"github.com/zrlmpi/zrlmpid/mpe/coll\"\n)\n\n")
	fmt.Fprintf(&b, "// measured has the decisions of \"zrlbench tune\". The times are in lab/tune/shipped.yaml; the\n")
	fmt.Fprintf(&b, "// test of that package prints this file when the times are replaced.\n")
	fmt.Fprintf(&b, "var measured = map[Class]Rows{\n")
	for _, class := range choice.Classes {
		if r, ok := rows[class]; ok {
			writeRows(&b, class, r)
		}
	}
	return b.String() + "}\n"
}

func writeRows(b *strings.Builder, class choice.Class, rows choice.Rows) {
	name := map[choice.Class]string{choice.Memory: "Memory", choice.Network: "Network",
		choice.OversubscribedMemory:  "OversubscribedMemory",
		choice.OversubscribedNetwork: "OversubscribedNetwork"}[class]
	fmt.Fprintf(b, "%s: {\nLink: Link{Alpha: %v, Beta: %v},\nRows: []Row{\n", name, rows.Link.Alpha, rows.Link.Beta)
	for _, r := range rows.Rows {
		fmt.Fprintf(b, "{coll.%s, %d, []Span{\n",
			strings.ReplaceAll(strings.ReplaceAll(r.Collective.String(), "_s", "S"), "_", ""), r.Ranks)
		for _, s := range r.Spans {
			end := strings.Replace(fmt.Sprint(s.MaxBytes), fmt.Sprint(math.MaxInt), "math.MaxInt", 1)
			fmt.Fprintf(b, "{%s, []Choice{", end)
			for _, by := range s.Choices {
				fmt.Fprintf(b, "{%q, %s}, ", by.Algorithm,
					strings.Replace(fmt.Sprint(by.Segment), fmt.Sprint(choice.AutoSegment), "Auto", 1))
			}
			fmt.Fprintf(b, "}},\n")
		}
		fmt.Fprintf(b, "}},\n")
	}
	fmt.Fprintf(b, "},\n},\n")
}
