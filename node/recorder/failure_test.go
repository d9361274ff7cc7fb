package recorder

import (
	"testing"
	"time"
)

// TestRateLimiter checks that four records are allowed immediately and then one a minute, and four again after a quiet
// period.
func TestRateLimiter(t *testing.T) {
	var p RateLimiter
	now := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		later   time.Duration
		allowed int // of 10 requests
	}{{0, 4}, {30 * time.Second, 0}, {31 * time.Second, 1}, {2 * time.Minute, 2}, {time.Hour, 4}} {
		now = now.Add(step.later)
		n := 0
		for range 10 {
			if p.Allow(now) {
				n++
			}
		}
		if n != step.allowed {
			t.Errorf("at %v %d records may be written, want %d", now, n, step.allowed)
		}
	}
}
