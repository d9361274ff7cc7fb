package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpend(t *testing.T) {
	for _, c := range []struct {
		operation time.Duration
		spend     []int
		want      time.Duration
	}{
		{0, []int{1 << 20}, 0},
		{9 * time.Microsecond, nil, 0},
		{9 * time.Microsecond, []int{0, 300, 1, 0}, 2709 * time.Microsecond},
		{time.Nanosecond, []int{1, 1, 1}, 3},
	} {
		synctest.Test(t, func(t *testing.T) {
			p, start := Processor{Operation: c.operation}, time.Now()
			for _, n := range c.spend {
				if err := p.Spend(t.Context(), n); err != nil {
					t.Fatal(err)
				}
			}
			if d := time.Since(start); d != c.want {
				t.Errorf("%v: %v of %v took %v", c.want, c.spend, c.operation, d)
			}
		})
	}
}

// TestOwed checks that earlier waits that took too long are deducted.
func TestOwed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, start := Processor{Operation: time.Microsecond, pendingWait: -10 * time.Microsecond}, time.Now()
		for _, want := range []time.Duration{0, 0, 2 * time.Microsecond, 6 * time.Microsecond} {
			if err := p.Spend(t.Context(), 4); err != nil || time.Since(start) != want {
				t.Errorf("%v after %v, want %v", err, time.Since(start), want)
			}
		}
	})
}

func TestEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("enough")
		ctx, stop := context.WithTimeoutCause(t.Context(), time.Second, cause)
		defer stop()
		p, start := Processor{Operation: time.Millisecond}, time.Now()
		if err := p.Spend(ctx, 10_000); err != cause || time.Since(start) != time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}
