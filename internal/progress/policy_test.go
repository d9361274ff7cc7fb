package progress

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func TestClasses(t *testing.T) {
	last := 0
	for d := time.Duration(0); d < 200*time.Millisecond; d += 1 + d/50 {
		c := classOf(d)
		if c < last || c > last+1 || c < numClasses-1 && d >= classLimits[c] || c > 0 && d < classLimits[c-1] {
			t.Fatalf("%v is of class %d after %d, which ends at %v", d, c, last, classLimits[c])
		}
		last = c
	}
	if last != numClasses-1 {
		t.Errorf("the last class is %d", last)
	}
	if c := classOf(1<<63 - 1); c != numClasses-1 {
		t.Errorf("the longest wait is of class %d", c)
	}
	if c := classOf(-1); c != 0 {
		t.Errorf("a wait of less than nothing is of class %d", c)
	}
}

// waits is a distribution of the lengths of waits.
type waits struct {
	name string
	next func(*rand.Rand) time.Duration
}

// between returns a random duration that is distributed uniformly on a logarithmic scale.
func between(r *rand.Rand, least, most time.Duration) time.Duration {
	d := least
	for d < most && r.IntN(8) != 0 {
		d += d / 8
	}
	return min(d+time.Duration(r.Int64N(int64(d))), most)
}

func someWaits() []waits {
	var all []waits
	for _, d := range []time.Duration{time.Microsecond, 10 * time.Microsecond, 100 * time.Microsecond, time.Millisecond,
		10 * time.Millisecond} {
		all = append(all,
			waits{fmt.Sprint(d), func(*rand.Rand) time.Duration { return d }},
			waits{fmt.Sprint("about ", d),
				func(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(int64(2 * d))) }},
			waits{fmt.Sprint("one of ten is ", d), func(r *rand.Rand) time.Duration {
				if r.IntN(10) == 0 {
					return d
				}
				return 5 * time.Microsecond
			}})
	}
	for _, length := range []int{3, 10, 30, 300} {
		left, d := 0, time.Duration(0)
		all = append(all, waits{fmt.Sprint("another one after ", length), func(r *rand.Rand) time.Duration {
			if left--; left < 0 {
				left, d = length, between(r, time.Microsecond, 10*time.Millisecond)
			}
			return d
		}})
	}
	return all
}

// cost returns the cost of a wait if the caller polls for budget.
func cost(wait, budget, wakeup time.Duration) time.Duration {
	if wait <= budget {
		return wait
	}
	return budget + sleepCost(wakeup)
}

// TestCompetitive checks that, for any sequence of waits, the cost of the policy is at most twice the cost of
// the best fixed budget in hindsight, plus the cost of learning a change.
func TestCompetitive(t *testing.T) {
	const n = 3000
	for _, wakeup := range []time.Duration{2 * time.Microsecond, 10 * time.Microsecond, 50 * time.Microsecond,
		200 * time.Microsecond} {
		for _, w := range someWaits() {
			r := rand.New(rand.NewPCG(1, 2))
			var seen [n]time.Duration
			var p policy
			budget, sum := sleepCost(wakeup), time.Duration(0)
			for i := range seen {
				seen[i] = w.next(r)
				sum += cost(seen[i], budget, wakeup)
				if p.recordWait(seen[i]) {
					budget = p.choose(sleepCost(wakeup))
				}
				if budget <= 0 || budget > sleepCost(wakeup) {
					t.Fatalf("%s, a wake-up costs %v: the budget is %v", w.name, wakeup, budget)
				}
			}
			best := time.Duration(0)
			for i := -1; i < numClasses; i++ {
				fixed := time.Duration(0) // sleep immediately
				if i >= 0 {
					fixed = classLimits[i]
				}
				all := time.Duration(0)
				for _, d := range seen {
					all += cost(d, fixed, wakeup)
				}
				if i < 0 || all < best {
					best = all
				}
			}
			if sum > 2*best+4*sleepCost(wakeup) {
				t.Errorf("%s, a wake-up costs %v: %v, the best budget costs %v", w.name, wakeup, sum, best)
			}
		}
	}
}

// TestPolicyAdapts checks that the policy adapts to a change after a few waits, regardless of the earlier waits.
func TestPolicyAdapts(t *testing.T) {
	const wakeup = 10 * time.Microsecond
	for _, before := range []time.Duration{0, 20 * time.Microsecond, sleepCost(wakeup), time.Hour} {
		for _, now := range []time.Duration{20 * time.Microsecond, sleepCost(wakeup) / 2, 10 * sleepCost(wakeup)} {
			var p policy
			for range 1000 {
				if p.recordWait(before) {
					p.choose(sleepCost(wakeup))
				}
			}
			budget, n := time.Duration(0), 1
			for ; n <= 30; n++ {
				if p.recordWait(now) {
					budget = p.choose(sleepCost(wakeup))
				}
				if (budget >= now) == (now < sleepCost(wakeup)) {
					break
				}
			}
			if n > 16 {
				t.Errorf("after waits of %v, the budget is %v for waits of %v after %d of them", before, budget, now, n)
			}
		}
	}
}

// BenchmarkWaited measures how long it takes to record a wait within the budget. This is little more than the
// time to count the wait.
func BenchmarkWaited(b *testing.B) {
	for _, d := range []time.Duration{10 * time.Microsecond, 10 * time.Millisecond} {
		b.Run(d.String(), func(b *testing.B) {
			var p SpinPolicy
			p.Init(false)
			for b.Loop() {
				p.recordWait(d)
			}
		})
	}
}
