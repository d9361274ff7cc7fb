package match

import (
	"fmt"
	"slices"
	"testing"
)

type pair struct{ source, tag int32 }

const any32 = AnySource

// TestOldestReceiveFirst posts receives in order, and lets the same message arrive repeatedly. It must match the
// receives that accept it, oldest first, whatever their wildcards.
func TestOldestReceiveFirst(t *testing.T) {
	kinds := []pair{{1, 2}, {1, any32}, {any32, 2}, {any32, any32}}
	strangers := []pair{{2, 2}, {1, 3}, {2, any32}, {any32, 3}}
	for _, first := range kinds {
		for _, second := range kinds {
			for _, depth := range []int{0, 3, 254, 255, 256, 600} {
				t.Run(fmt.Sprintf("%v,%v behind %d", first, second, depth), func(t *testing.T) {
					m := New[int, int](Limits{})
					for i := range depth {
						k := strangers[i%len(strangers)]
						m.Post(k.source, k.tag, -1)
					}
					var want []int
					for i := range 8 {
						k := first
						if i%3 == 1 {
							k = second
						}
						m.Post(k.source, k.tag, i)
						want = append(want, i)
					}
					var got []int
					for range want {
						r, ok, _, _ := m.Arrive(1, 2, 0)
						if !ok {
							t.Fatalf("no match after %v", got)
						}
						got = append(got, r)
					}
					if !slices.Equal(got, want) {
						t.Errorf("matched %v, want %v", got, want)
					}
					if r, ok, h, err := m.Arrive(1, 2, 0); ok || h == (Handle{}) || err != nil {
						t.Errorf("one more matched %d, %v, %v", r, h, err)
					}
					if m.Posted() != depth || m.Unexpected() != 1 {
						t.Errorf("%d posted, %d unexpected; want %d, 1", m.Posted(), m.Unexpected(), depth)
					}
				})
			}
		}
	}
}

// TestOldestMessageFirst does the same with the other queue: messages wait, and each receive must get the oldest
// message that matches it.
func TestOldestMessageFirst(t *testing.T) {
	arrivals := []pair{{1, 2}, {3, 2}, {1, 4}, {3, 4}, {1, 2}, {3, 4}}
	tests := []struct {
		receive pair
		want    []int
	}{
		{pair{1, 2}, []int{0, 4}},
		{pair{3, 4}, []int{3, 5}},
		{pair{1, any32}, []int{0, 2, 4}},
		{pair{3, any32}, []int{1, 3, 5}},
		{pair{any32, 2}, []int{0, 1, 4}},
		{pair{any32, 4}, []int{2, 3, 5}},
		{pair{any32, any32}, []int{0, 1, 2, 3, 4, 5}},
		{pair{5, 2}, nil},
		{pair{5, any32}, nil},
		{pair{any32, 5}, nil},
	}
	for _, test := range tests {
		for _, depth := range []int{0, 253, 256, 600} {
			for _, how := range []string{"Post", "Claim"} {
				t.Run(fmt.Sprintf("%s%v behind %d", how, test.receive, depth), func(t *testing.T) {
					if test.receive == (pair{any32, any32}) && depth > 0 {
						t.Skip("everything before them fits too")
					}
					m := New[int, int](Limits{})
					for i := range depth {
						m.Arrive(100, int32(100+i%7), -1)
					}
					for i, k := range arrivals {
						m.Arrive(k.source, k.tag, i)
					}
					k := test.receive
					var got []int
					for {
						seen, found := m.Probe(k.source, k.tag)
						var msg int
						var ok bool
						if how == "Claim" {
							msg, ok = m.Claim(k.source, k.tag)
						} else {
							msg, ok, _, _ = m.Post(k.source, k.tag, 0)
						}
						if found != ok || seen != msg {
							t.Fatalf("Probe saw %d, %v, then %s gave %d, %v", seen, found, how, msg, ok)
						}
						if !ok {
							break
						}
						got = append(got, msg)
					}
					if !slices.Equal(got, test.want) {
						t.Errorf("got %v, want %v", got, test.want)
					}
				})
			}
		}
	}
}

// TestExtremeKeys matches at both ends of the range of sources and tags.
func TestExtremeKeys(t *testing.T) {
	const top = 1<<31 - 1
	for _, k := range []pair{{0, 0}, {0, top}, {top, 0}, {top, top}} {
		for _, r := range []pair{k, {k.source, any32}, {any32, k.tag}, {any32, any32}} {
			m := New[int, int](Limits{})
			m.Post(r.source, r.tag, 7)
			if got, ok, _, _ := m.Arrive(k.source, k.tag, 8); !ok || got != 7 {
				t.Errorf("%v: arrival at %v gave %d, %v", k, r, got, ok)
			}
			m.Arrive(k.source, k.tag, 9)
			if got, ok, _, _ := m.Post(r.source, r.tag, 10); !ok || got != 9 {
				t.Errorf("%v: receive %v gave %d, %v", k, r, got, ok)
			}
		}
	}
}

// TestRestore removes all messages and restores them, in several orders: they must regain their old
// positions, before messages that arrived since.
func TestRestore(t *testing.T) {
	for _, n := range []int{1, 3, 256, 257, 700} {
		backs := map[string]func(i int) int{
			"oldest first":   func(i int) int { return i },
			"youngest first": func(i int) int { return n - 1 - i },
			"scattered":      func(i int) int { return i * 101 % n }, // 101 is prime to every n
		}
		for name, back := range backs {
			t.Run(fmt.Sprintf("%d %s", n, name), func(t *testing.T) {
				m := New[int, int](Limits{})
				orders := make([]uint64, n)
				for i := range n {
					m.Arrive(int32(i%3), 5, i)
					orders[i] = m.Order()
					if msg, ok, _, _ := m.Post(AnySource, 5, 0); !ok || msg != i {
						t.Fatalf("message %d: the receive got %d, %v", i, msg, ok)
					}
				}
				m.Arrive(0, 5, n)
				m.Arrive(1, 5, n+1)
				for i := range n {
					k := back(i)
					if _, ok, h, err := m.Restore(int32(k%3), 5, k, orders[k]); ok || h == (Handle{}) || err != nil {
						t.Fatalf("Restore of %d: %v, %v, %v", k, ok, h, err)
					}
				}
				for i := 0; i < n; i += 3 {
					if msg, ok := m.Claim(0, 5); !ok || msg != i {
						t.Fatalf("got message %d, %v from source 0, want %d", msg, ok, i)
					}
				}
				for i := range n + 2 {
					if i%3 == 0 && i < n {
						continue
					}
					if msg, ok := m.Claim(AnySource, AnyTag); !ok || msg != i {
						t.Fatalf("got message %d, %v, want %d", msg, ok, i)
					}
				}
			})
		}
	}
}

// TestRestoreMatches restores a message that fits a posted receive.
func TestRestoreMatches(t *testing.T) {
	m := New[int, int](Limits{})
	_, _, h, _ := m.Arrive(1, 2, 10)
	order := m.Order()
	m.Claim(1, 2)
	m.Post(1, AnyTag, 20)
	if r, ok, _, err := m.Restore(1, 2, 10, order); !ok || r != 20 || err != nil {
		t.Errorf("Restore gave %d, %v, %v, want receive 20", r, ok, err)
	}
	// The old handle stays stale even when the message regains its old position.
	_, _, again, _ := m.Restore(1, 2, 10, order)
	if _, ok := m.RemoveUnexpected(h); ok {
		t.Error("the handle from before the match is alive again")
	}
	if msg, ok := m.RemoveUnexpected(again); !ok || msg != 10 {
		t.Errorf("the new handle gave %d, %v", msg, ok)
	}
}
