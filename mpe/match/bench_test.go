package match

import (
	"fmt"
	"testing"
)

// load keeps a queue at a constant depth while a pattern runs on it. Each step matches one entry and queues one.
// own is the number of entries that the pattern itself needs; the depth is the number of further entries.
type load struct {
	name  string
	own   int
	setup func(depth int) (step func(), check func() int)
}

type item struct{ source, tag int32 }

var depths = []int{0, 256, 1000, 10000, 30000, 100000}

// keyOf spreads n over 64 sources and any number of tags.
func keyOf(n int) (source, tag int32) { return int32(n & 63), int32(n >> 6) }

// picks returns a generator of positions to match. It costs about as much as reading them from a table, which
// would compete with the queue for the caches.
func picks(depth int) func() int {
	x, n := uint64(1), uint64(depth+1)
	return func() int {
		x = x*6364136223846793005 + 1442695040888963407
		return int(x >> 32 * n >> 32)
	}
}

func mustPost(m *Matcher[*item, *item], source, tag int32, r *item) {
	if _, ok, _, err := m.Post(source, tag, r); ok || err != nil {
		panic("a receive was not queued")
	}
}

func mustArrive(m *Matcher[*item, *item], source, tag int32, msg *item) *item {
	r, ok, _, err := m.Arrive(source, tag, msg)
	if !ok || err != nil {
		panic("a message did not match")
	}
	return r
}

// posted returns a matcher with depth+1 receives. A step matches one of them and posts it again.
func posted(depth int, class func(n int) (source, tag int32)) *Matcher[*item, *item] {
	m := New[*item, *item](Limits{})
	items := make([]item, depth+1)
	for n := range items {
		s, t := class(n)
		items[n] = item{s, t}
		mustPost(m, s, t, &items[n])
	}
	return m
}

var loads = []load{
	{"hit-first", 1, func(depth int) (func(), func() int) {
		m, n := posted(depth, keyOf), 0
		return func() {
			s, t := keyOf(n)
			mustPost(m, s, t, mustArrive(m, s, t, nil))
			if n++; n > depth {
				n = 0
			}
		}, m.Posted
	}},
	{"hit-last", 1, func(depth int) (func(), func() int) {
		m := posted(depth, keyOf)
		s, t := keyOf(depth)
		return func() { mustPost(m, s, t, mustArrive(m, s, t, nil)) }, m.Posted
	}},
	{"random", 1, func(depth int) (func(), func() int) {
		m, p := posted(depth, keyOf), picks(depth)
		return func() {
			s, t := keyOf(p())
			mustPost(m, s, t, mustArrive(m, s, t, nil))
		}, m.Posted
	}},
	// The receives alternate between the four classes, and an arrival compares four heads. This needs at least one
	// receive of each class, even at depth 0; with fewer receives, the benchmark would measure the number of
	// classes, not the depth.
	{"wildcard-heavy", 4, func(depth int) (func(), func() int) {
		m, p := posted(depth+3, wildKey), picks(depth+3)
		return func() {
			s, t := keyOf(p())
			r := mustArrive(m, s, t, nil)
			mustPost(m, r.source, r.tag, r)
		}, m.Posted
	}},
	// No (*,*).
	{"wildcard-deep", 1, func(depth int) (func(), func() int) {
		class := func(n int) (int32, int32) {
			switch s, t := int32(n), int32(n); n % 3 {
			case 0:
				return s, AnyTag
			case 1:
				return AnySource, t
			default:
				return s, t
			}
		}
		m, p := posted(depth, class), picks(depth)
		return func() {
			k := int32(p())
			r := mustArrive(m, k, k, nil)
			mustPost(m, r.source, r.tag, r)
		}, m.Posted
	}},
	{"unexpected", 1, unexpected(exact)},
	{"unexpected-source", 1, unexpected(bySource)},
	{"unexpected-any", 1, unexpected(byNone)},
	{"unexpected-mixed", 1, unexpected(numClasses)},
}

func wildKey(n int) (source, tag int32) {
	s, t := keyOf(n)
	switch n & 3 {
	case 0:
		return s, AnyTag
	case 1:
		return AnySource, t
	case 2:
		return s, t
	default:
		return AnySource, AnyTag
	}
}

// unexpected posts receives of a class for random messages in the UMQ. Each matched message then arrives again. If
// the class is numClasses, all classes are used in rotation.
func unexpected(c class) func(depth int) (func(), func() int) {
	return func(depth int) (func(), func() int) {
		m, p, n := New[*item, *item](Limits{}), picks(depth), 0
		arrive := func(source, tag int32, i *item) {
			if _, ok, _, err := m.Arrive(source, tag, i); ok || err != nil {
				panic("a message was not queued")
			}
		}
		items := make([]item, depth+1)
		for n := range items {
			s, t := keyOf(n)
			items[n] = item{s, t}
			arrive(s, t, &items[n])
		}
		return func() {
			s, t := keyOf(p())
			k := c
			if c == numClasses {
				k = class(n & 3)
			}
			n++
			rs, rt := splitKey(makeKey(s, t) | masks[k])
			msg, ok, _, err := m.Post(rs, rt, nil)
			if !ok || err != nil {
				panic("a receive did not match")
			}
			if k != exact { // the oldest that fits, not the picked one
				s, t = msg.source, msg.tag
			}
			arrive(s, t, msg)
		}, m.Unexpected
	}
}

// BenchmarkMatch matches one entry and queues one entry per op, at constant depth.
func BenchmarkMatch(b *testing.B) {
	for _, l := range loads {
		for _, depth := range depths {
			b.Run(fmt.Sprintf("depth=%d/pattern=%s", depth, l.name), func(b *testing.B) {
				step, _ := l.setup(depth)
				for range 2 * depth {
					step()
				}
				b.ReportAllocs()
				for b.Loop() {
					step()
				}
			})
		}
	}
}
