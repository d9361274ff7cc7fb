package match

import (
	"errors"
	"testing"
)

// TestRepost checks that a reposted receive regains its old position, even before one of another class, and
// in a queue of several segments.
func TestRepost(t *testing.T) {
	for _, behind := range []int{0, 1, segLen + 10} {
		m := New[int, int](Limits{})
		post := func(source, tag int32, r int) (order uint64) {
			t.Helper()
			if _, ok, _, err := m.Post(source, tag, r); ok || err != nil {
				t.Fatal(ok, err)
			}
			return m.PostOrder()
		}
		arrive := func(source int32, want int) {
			t.Helper()
			if r, ok, _, err := m.Arrive(source, 0, 0); !ok || err != nil || r != want {
				t.Fatalf("%d behind: the message met receive %d (%v, %v), want %d", behind, r, ok, err, want)
			}
		}
		first := post(AnySource, 0, 1)
		post(7, 0, 2)
		for i := range behind {
			post(7, 0, 3+i)
		}
		arrive(7, 1)
		arrive(7, 2)
		if _, ok, h, err := m.Repost(AnySource, 0, 1, first); ok || err != nil || h == (Handle{}) {
			t.Fatal(ok, h, err)
		} else if _, _, _, err := m.Repost(AnySource, 0, 1, first); !isOrderError(err) {
			t.Fatalf("posted again twice: %v", err)
		}
		arrive(7, 1)
		if behind > 0 {
			arrive(7, 3)
		}
		if m.PostOrder() != first+1+uint64(behind) {
			t.Errorf("PostOrder returns %d", m.PostOrder())
		}
	}
}

// TestRepostMeetsAndFails checks that Repost matches a message that arrived since, and fails like Post.
func TestRepostMeetsAndFails(t *testing.T) {
	m := New[int, int](Limits{Posted: 1})
	if _, _, _, err := m.Post(1, 0, 1); err != nil {
		t.Fatal(err)
	}
	order := m.PostOrder()
	m.Arrive(1, 0, 10)
	m.Arrive(1, 0, 11)
	if msg, ok, _, err := m.Repost(1, 0, 1, order); !ok || err != nil || msg != 11 {
		t.Fatalf("%d, %v, %v", msg, ok, err)
	}
	if _, _, _, err := m.Post(1, 0, 2); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := m.Repost(1, 0, 1, order); !errors.Is(err, ErrFull) {
		t.Errorf("a full queue: %v", err)
	}
	for _, order := range []uint64{0, m.PostOrder() + 1} {
		if _, _, _, err := m.Repost(1, 0, 1, order); !isOrderError(err) {
			t.Errorf("order %d: %v", order, err)
		}
	}
	var k *KeyError
	if _, _, _, err := m.Repost(-2, 0, 1, order); !errors.As(err, &k) {
		t.Errorf("a source below -1: %v", err)
	}
}

func isOrderError(err error) bool {
	var o *OrderError
	return errors.As(err, &o) && o.Queue == Posted && o.Error() != ""
}
