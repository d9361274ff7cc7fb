package match

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestLimits(t *testing.T) {
	m := New[int, int](Limits{Posted: 2, Unexpected: 300})
	for i := range 2 {
		if _, _, _, err := m.Post(1, AnyTag, i); err != nil {
			t.Fatal(err)
		}
	}
	_, ok, h, err := m.Post(1, 2, 2)
	var full *FullError
	if ok || h != (Handle{}) || !errors.Is(err, ErrFull) || !errors.As(err, &full) || *full != (FullError{Posted, 2}) {
		t.Fatalf("the third receive: %v, %v, %v", ok, h, err)
	}
	if !strings.Contains(err.Error(), "2 receives are posted") {
		t.Errorf("%q does not name the full queue", err)
	}
	for i := range 300 {
		if _, _, _, err := m.Arrive(9, 9, i); err != nil {
			t.Fatal(err)
		}
	}
	_, ok, h, err = m.Arrive(9, 9, 300)
	if ok || h != (Handle{}) || !errors.As(err, &full) || *full != (FullError{Unexpected, 300}) {
		t.Fatalf("one message more: %v, %v, %v", ok, h, err)
	}
	if !strings.Contains(err.Error(), "300 unexpected messages") {
		t.Errorf("%q does not name the full queue", err)
	}
	if _, _, _, err := m.Restore(9, 9, 300, m.Order()); !errors.Is(err, ErrFull) {
		t.Errorf("Restore at the limit: %v", err)
	}
	// A full queue still matches, and accepts entries afterwards.
	if r, ok, _, err := m.Arrive(1, 5, 0); !ok || r != 0 || err != nil {
		t.Errorf("an arrival for a posted receive: %d, %v, %v", r, ok, err)
	}
	if msg, ok, _, err := m.Post(9, 9, 0); !ok || msg != 0 || err != nil {
		t.Errorf("a receive for a queued message: %d, %v, %v", msg, ok, err)
	}
	if _, ok, h, err := m.Post(2, 2, 0); ok || h == (Handle{}) || err != nil {
		t.Errorf("a receive where one was removed: %v, %v, %v", ok, h, err)
	}
	if _, ok, h, err := m.Arrive(9, 9, 0); ok || h == (Handle{}) || err != nil {
		t.Errorf("a message where one was removed: %v, %v, %v", ok, h, err)
	}
}

func TestDefaultLimits(t *testing.T) {
	for _, test := range []struct{ given, want int }{
		{0, DefaultLimit}, {-1, DefaultLimit}, {1, 1}, {1 << 30, 1 << 30}, {math.MaxInt, 1 << 30},
	} {
		if got := limit(test.given); got != test.want {
			t.Errorf("a limit of %d means %d, want %d", test.given, got, test.want)
		}
	}
}

func TestBadKeys(t *testing.T) {
	m := New[int, int](Limits{})
	m.Arrive(0, 0, 1)
	order := m.Order()
	for _, k := range []pair{{-1, 0}, {0, -1}, {-2, 0}, {0, math.MinInt32}} {
		var bad *KeyError
		if _, ok, _, err := m.Arrive(k.source, k.tag, 0); ok || !errors.As(err, &bad) ||
			*bad != (KeyError{Unexpected, k.source, k.tag}) {
			t.Errorf("Arrive%v: %v, %v", k, ok, err)
		}
		if _, ok, _, err := m.Restore(k.source, k.tag, 0, order); ok || !errors.As(err, &bad) {
			t.Errorf("Restore%v: %v, %v", k, ok, err)
		}
	}
	for _, k := range []pair{{-2, 0}, {0, -2}, {math.MinInt32, AnyTag}} {
		var bad *KeyError
		if _, ok, _, err := m.Post(k.source, k.tag, 0); ok || !errors.As(err, &bad) ||
			*bad != (KeyError{Posted, k.source, k.tag}) {
			t.Errorf("Post%v: %v, %v", k, ok, err)
		}
		if _, ok := m.Probe(k.source, k.tag); ok {
			t.Errorf("Probe%v found something", k)
		}
		if _, ok := m.Claim(k.source, k.tag); ok {
			t.Errorf("Claim%v found something", k)
		}
	}
	if m.Posted() != 0 || m.Unexpected() != 1 || m.Order() != order {
		t.Errorf("bad keys left traces: %d posted, %d unexpected, order %d", m.Posted(), m.Unexpected(), m.Order())
	}
}

func TestBadOrders(t *testing.T) {
	m := New[int, int](Limits{})
	m.Post(7, 7, 0)
	m.Arrive(1, 1, 1)
	taken := m.Order()
	m.Post(7, 7, 0)
	for _, order := range []uint64{0, taken, taken + 1, math.MaxUint64} {
		var bad *OrderError
		if _, ok, h, err := m.Restore(2, 2, 0, order); ok || h != (Handle{}) || !errors.As(err, &bad) ||
			*bad != (OrderError{Unexpected, order, taken}) {
			t.Errorf("Restore to %d: %v, %v, %v", order, ok, h, err)
		}
	}
	if m.Unexpected() != 1 {
		t.Errorf("%d unexpected, want 1", m.Unexpected())
	}
}

// TestHandles cancels entries at every position of both queues.
func TestHandles(t *testing.T) {
	const n = 600
	for _, at := range []int{0, 1, 254, 255, 256, 257, n - 2, n - 1} {
		for _, keys := range []int32{1, 3, n} {
			m := New[int, int](Limits{})
			var posted, waiting [n]Handle
			for i := range n {
				_, _, posted[i], _ = m.Post(int32(i)%keys, 1, i)
				_, _, waiting[i], _ = m.Arrive(int32(i)%keys, 2, i)
			}
			if _, ok := m.RemoveUnexpected(posted[at]); ok {
				t.Errorf("receive %d was taken for a message", at)
			}
			if _, ok := m.CancelPosted(waiting[at]); ok {
				t.Errorf("message %d was taken for a receive", at)
			}
			if r, ok := m.CancelPosted(posted[at]); !ok || r != at {
				t.Errorf("CancelPosted of %d gave %d, %v", at, r, ok)
			}
			if msg, ok := m.RemoveUnexpected(waiting[at]); !ok || msg != at {
				t.Errorf("RemoveUnexpected of %d gave %d, %v", at, msg, ok)
			}
			// Entries are reused at once, but handles are not.
			m.Post(0, 3, -1)
			m.Arrive(0, 4, -1)
			if r, ok := m.CancelPosted(posted[at]); ok {
				t.Errorf("the stale handle of %d took receive %d", at, r)
			}
			if msg, ok := m.RemoveUnexpected(waiting[at]); ok {
				t.Errorf("the stale handle of %d took message %d", at, msg)
			}
			for i := range n {
				if i == at {
					continue
				}
				if r, ok, _, _ := m.Arrive(int32(i)%keys, 1, 0); !ok || r != i {
					t.Fatalf("with %d cancelled, message %d met %d, %v", at, i, r, ok)
				}
			}
		}
	}
	m := New[int, int](Limits{})
	for _, h := range []Handle{{}, {seq: 1, index: 1}, {seq: 1, index: math.MaxUint32}} {
		if _, ok := m.CancelPosted(h); ok {
			t.Errorf("CancelPosted took %+v of an empty queue", h)
		}
		if _, ok := m.RemoveUnexpected(h); ok {
			t.Errorf("RemoveUnexpected took %+v of an empty queue", h)
		}
	}
}
