package main

import (
	"testing"
	"time"
)

// TestYields: the clock is read in one of eight calls, and a call yields once 4 ms have gone by.
func TestYields(t *testing.T) {
	var y yields
	read := 0
	for _, tt := range []struct {
		now  time.Duration
		want bool
	}{
		{yieldAfter - 1, false},
		{yieldAfter, true},
		{2*yieldAfter - 1, false},
		{2 * yieldAfter, true},
		{time.Hour, true},
		{time.Hour, false},
	} {
		for i := range clockEvery {
			got := y.due(func() time.Duration { read++; return tt.now })
			if got != (tt.want && i == clockEvery-1) {
				t.Errorf("call %d at %v: %v", i, tt.now, got)
			}
		}
	}
	if read != 6 {
		t.Errorf("the clock was read %d times", read)
	}
}
