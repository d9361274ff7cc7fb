package impair

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// Forever is the Fate.Delay of a packet that is never delivered.
const Forever = time.Duration(math.MaxInt64)

// Impairer applies a script to the packets between some ranks. Directions do not affect each
// other. It is not safe for concurrent use.
type Impairer struct {
	seed  uint64
	rules []activeRule
	flows map[direction]*flow
	// out and next are what Datagram returns, and makes next.
	out, next []Delivery
}

// activeRule is a rule with its ranks; nil: all of them.
type activeRule struct {
	Rule
	from, to []bool
}

type direction struct{ from, to int }

// flow is the state of one direction.
type flow struct {
	counts [numKinds]Count
	rules  []ruleState
	// ordered is when the last packet of a stream is delivered.
	ordered time.Duration
}

// ruleState is the state of a rule in one direction.
type ruleState struct {
	rng *rand.Rand
	// seen is how many packets the rule was for.
	seen int
	// bursting: the last datagram was lost in a burst.
	bursting bool
	// free is when all that passed before has been sent, by the rule's rate.
	free time.Duration
}

// Delivery is one arrival of a datagram.
type Delivery struct {
	// After is how long after it was sent.
	After time.Duration
	// Flip is the number of the bit that is inverted on the way, or -1.
	Flip int
}

// Apply inverts the bit in b, if there is one.
func (d Delivery) Apply(b []byte) {
	if d.Flip >= 0 {
		b[d.Flip/8] ^= 1 << (d.Flip % 8)
	}
}

// Ending is what befalls a connection.
type Ending uint8

// The endings of a connection.
const (
	// Continues: none.
	Continues Ending = iota
	// Closes: its direction is closed behind the packet.
	Closes
	// Resets: it is reset, and the packet is lost.
	Resets
)

// Fate is what befalls a packet of a stream.
type Fate struct {
	// Delivery says when it is delivered; never earlier than those before it.
	Delivery
	Ending Ending
}

// New returns an Impairer for ranks with the given addresses. The error is that of
// Script.Check.
func New(s Script, m Medium, ranks []netip.Addr) (*Impairer, error) {
	if err := s.Check(m, ranks); err != nil {
		return nil, err
	}
	im := &Impairer{seed: uint64(s.Seed), rules: make([]activeRule, len(s.Rules)), flows: make(map[direction]*flow)}
	for i, r := range s.Rules {
		from, _ := r.From.resolve(ranks) // Check has
		to, _ := r.To.resolve(ranks)
		im.rules[i] = activeRule{r, from, to}
	}
	return im, nil
}

// flow returns the state of a direction. Each rule has randomness of its own there, so that
// what other directions and rules do changes nothing.
func (im *Impairer) flow(from, to int) *flow {
	d := direction{from, to}
	f := im.flows[d]
	if f == nil {
		f = &flow{rules: make([]ruleState, len(im.rules))}
		for i := range f.rules {
			f.rules[i].rng = rand.New(rand.NewPCG(im.seed, uint64(i)<<42|uint64(from)<<21|uint64(to)))
		}
		im.flows[d] = f
	}
	return f
}

// selects reports whether a packet meets the faults of the rule.
func (r *activeRule) selects(s *ruleState, now time.Duration, from, to int, k Kind) bool {
	if now < r.After || r.For > 0 && now >= r.After+r.For || !r.Packets.has(k) ||
		r.from != nil && !r.from[from] || r.to != nil && !r.to[to] {
		return false
	}
	s.seen++
	return r.Nth.has(s.seen)
}

// Datagram decides about the next datagram of a direction, which is sent at now; now does not
// decrease. It returns the deliveries of it, none if it is lost. The slice is valid until the
// next call.
func (im *Impairer) Datagram(now time.Duration, from, to int, b []byte) []Delivery {
	f, k := im.flow(from, to), KindOf(b)
	c := &f.counts[k]
	c.Packets++
	c.Bytes += uint64(len(b))
	im.out = append(im.out[:0], Delivery{Flip: -1})
	for i := range im.rules {
		r, s := &im.rules[i], &f.rules[i]
		im.next = im.next[:0]
		for _, d := range im.out {
			if r.selects(s, now, from, to, k) {
				im.next = r.datagram(im.next, s, now, len(b), d, c)
			} else {
				im.next = append(im.next, d)
			}
		}
		im.out, im.next = im.next, im.out
	}
	return im.out
}

// datagram appends what a rule makes of a datagram that was to be delivered as d.
func (r *activeRule) datagram(out []Delivery, s *ruleState, now time.Duration, length int, d Delivery, c *Count) []Delivery {
	if r.Partition || r.Loss > 0 && r.loses(s) {
		c.Lost++
		return out
	}
	if r.Rate > 0 {
		waits := max(s.free-now, 0)
		queue := DefaultQueue
		if r.Queue > 0 {
			queue = int(r.Queue)
		}
		if waits.Seconds()*float64(r.Rate)+float64(length) > float64(queue) {
			c.Overflowed++
			return out
		}
		d.After += r.throttle(s, now, length)
	}
	d = r.alter(s, d, length, c)
	if r.Reorder > 0 && chance(s, r.Reorder) {
		c.Reordered++
		by := reorderBy
		if r.Late.Max > 0 {
			by = r.Late.pick(s.rng)
		}
		d.After += by
	}
	out = append(out, d)
	if r.Duplicate > 0 && chance(s, r.Duplicate) {
		c.Duplicated++
		d.After += r.Late.pick(s.rng)
		out = append(out, d)
	}
	return out
}

// alter applies the faults that streams meet as well.
func (r *activeRule) alter(s *ruleState, d Delivery, length int, c *Count) Delivery {
	if r.Delay.Max > 0 {
		c.Delayed++
		d.After += r.Delay.pick(s.rng)
	}
	if r.Corrupt > 0 && length > 0 && chance(s, r.Corrupt) {
		c.Corrupted++
		d.Flip = s.rng.IntN(8 * length)
	}
	return d
}

// loses decides by the model of Gilbert and Elliott, whose bad state loses all and whose good
// state none.
func (r *activeRule) loses(s *ruleState) bool {
	switch {
	case r.Burst == 0:
		return chance(s, r.Loss)
	case r.Loss == 100:
		return true
	case s.bursting:
		s.bursting = s.rng.Float64() >= 1/r.Burst
	default:
		s.bursting = s.rng.Float64() < r.begin()
	}
	return s.bursting
}

// throttle returns when the last byte of a packet has been sent by the rule's rate.
func (r *activeRule) throttle(s *ruleState, now time.Duration, length int) time.Duration {
	s.free = max(s.free, now) + time.Duration(float64(length)/float64(r.Rate)*float64(time.Second))
	return s.free - now
}

func chance(s *ruleState, p Percent) bool { return 100*s.rng.Float64() < float64(p) }

func (s Span) pick(rng *rand.Rand) time.Duration {
	if s.Max == s.Min {
		return s.Min
	}
	return s.Min + time.Duration(rng.Int64N(int64(s.Max-s.Min)+1))
}

// Piece decides about the next packet of a direction over a stream, or the next piece of
// one, which is sent at now; now does not decrease.
func (im *Impairer) Piece(now time.Duration, from, to int, k Kind, length int) Fate {
	f := im.flow(from, to)
	c := &f.counts[k]
	c.Packets++
	c.Bytes += uint64(length)
	fate := Fate{Delivery: Delivery{Flip: -1}}
	for i := range im.rules {
		r, s := &im.rules[i], &f.rules[i]
		if !r.selects(s, now, from, to, k) {
			continue
		}
		switch {
		case r.Reset > 0 && chance(s, r.Reset):
			c.Resets++
			fate.Ending = Resets
			return fate
		case r.Close > 0 && chance(s, r.Close):
			c.Closes++
			fate.Ending = Closes
		}
		if r.Rate > 0 {
			fate.After += r.throttle(s, now, length)
		}
		fate.Delivery = r.alter(s, fate.Delivery, length, c)
		if r.Partition {
			c.Held++
			if r.For == 0 {
				fate.After = Forever
				return fate
			}
			fate.After = max(fate.After, r.After+r.For-now)
		}
	}
	f.ordered = max(f.ordered, now+fate.After)
	fate.After = f.ordered - now
	return fate
}

// Connected says that a direction begins anew on another connection: nothing of the one
// before delays what is sent on it.
func (im *Impairer) Connected(from, to int) {
	f := im.flow(from, to)
	f.ordered = 0
	for i := range f.rules {
		f.rules[i].free = 0
	}
}

// Report returns what befell the packets so far, sorted by direction and type.
func (im *Impairer) Report() []Row {
	var rows []Row
	for d, f := range im.flows {
		for k, c := range f.counts {
			if c.Packets > 0 {
				rows = append(rows, Row{From: d.from, To: d.to, Packet: Kind(k).String(), kind: k, Count: c})
			}
		}
	}
	slices.SortFunc(rows, compareRows)
	return rows
}
