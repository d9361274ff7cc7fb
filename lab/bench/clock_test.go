package bench

import "testing"

func TestSharedNow(t *testing.T) {
	for last, i := sharedNow(), 0; i < 1000; i++ {
		now := sharedNow()
		if now < last {
			t.Fatalf("%v comes after %v", now, last)
		}
		last = now
	}
}
