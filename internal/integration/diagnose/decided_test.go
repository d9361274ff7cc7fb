package diagnose_test

import (
	"fmt"
	"testing"

	kit "github.com/zrlmpi/zrlmpid/internal/testkit/verdict"
)

// An answer is decidable if its evidence allows a single cause. Certain answers are decidable, since none is wrong. An
// answer that is not certain counts as undecided if all runs with the same evidence have the same class of causes, and
// a search finds no run with another class. Both are counted only if enough runs have the same evidence, because in a
// smaller group a list would count as undecided by chance.

// decisions counts the right and the undecided answers at a vantage.
type decisions struct{ right, undecided int }

func (d decisions) decidable() int { return d.right + d.undecided }

// decide searches for other causes of evidence with a single class, and counts the decisions of all vantages.
func (r *results) decide() map[string]*decisions {
	r.seek(search{runs: minRuns, attempts: 300, perEvidence: true,
		isOpen: func(s sought) bool { return len(r.truths[s.evidence]) == 1 }})
	byVantage := map[string]*decisions{}
	for _, v := range vantageNames {
		byVantage[v] = new(decisions)
	}
	for i := range r.all {
		a := &r.all[i]
		switch {
		case !r.isComparable(a, minRuns):
		case a.verdict == right:
			byVantage[a.vantage].right++
		case len(r.truths[a.evidence]) == 1:
			a.isUndecided = true
			byVantage[a.vantage].undecided++
		}
	}
	return byVantage
}

// required is the minimum percentage of decidable answers that are certain.
var required = map[string]int{"one": 95, "links": 95, "some": 95, "all": 99}

// TestDecided checks that decidable answers are certain. Few answers have frequent evidence in fewer than 10,000
// clusters.
func TestDecided(t *testing.T) {
	r := newResults(simulateAll())
	byVantage := r.decide()
	for i := range r.all {
		if a := &r.all[i]; a.isUndecided && *show == "undecided" {
			r.logAnswer(t, a)
		}
	}
	table := [][]string{{"vantage", "decidable", "certain"}}
	for _, v := range vantageNames {
		d := byVantage[v]
		if d.decidable() == 0 {
			continue
		}
		row := []string{vantageTitles[v], fmt.Sprint(d.decidable()), fmt.Sprint(d.right)}
		table = append(table, row)
		t.Log(row)
		if d.right*100 < required[v]*d.decidable() {
			t.Errorf("%s: %d of %d answers are certain where only one cause is possible, fewer than %d %%: "+
				"-show undecided has the others", v, d.right, d.decidable(), required[v])
		}
	}
	if *write {
		title := fmt.Sprintf("%d clusters (`make decided SEEDS=%d`), %d answers", *seeds, *seeds, r.total.answers())
		if err := kit.WriteTable(page, "decided", title, table); err != nil {
			t.Fatal(err)
		}
	}
}
