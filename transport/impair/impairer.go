package impair

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"
)

// Forever is the value of Delivery.After for a packet that is never delivered.
const Forever = time.Duration(math.MaxInt64)

// Impairer applies a script to the packets between the ranks of a cluster. Each direction between two ranks is
// independent of the others. An Impairer is not safe for concurrent use.
type Impairer struct {
	seed  uint64
	rules []activeRule
	flows map[direction]*flow
	// deliveries holds the result of DecideDatagram. next is the buffer in which the result of one rule is built.
	deliveries, next []Delivery
}

// activeRule is a rule whose ranks have been resolved to indexes. A nil slice selects all ranks.
type activeRule struct {
	Rule
	from, to []bool
}

type direction struct{ from, to int }

// flow is the state of one direction.
type flow struct {
	counts [numKinds]Count
	rules  []ruleState
	// lastDelivery is the time at which the last packet of a stream is delivered.
	lastDelivery time.Duration
}

// ruleState is the state of a rule in one direction.
type ruleState struct {
	rng *rand.Rand
	// packetsSeen is the number of packets so far that satisfied all conditions of the rule other than nth.
	packetsSeen int
	// inBurst is set while a burst of losses continues, because the rule lost the last datagram as a part of it.
	inBurst bool
	// rateFreeAt is the time at which the last of the earlier packets has been sent completely at the rule's rate.
	rateFreeAt time.Duration
}

// Delivery is one delivery of a datagram.
type Delivery struct {
	// After is the time that passes between sending and delivery.
	After time.Duration
	// Flip is the index of the bit to invert, or -1.
	Flip int
}

// Apply inverts the bit of b that Flip selects. It does nothing if Flip is -1.
func (d Delivery) Apply(b []byte) {
	if d.Flip >= 0 {
		b[d.Flip/8] ^= 1 << (d.Flip % 8)
	}
}

// Ending is a fault of a connection.
type Ending uint8

// The endings of a connection.
const (
	// Continues leaves the connection open.
	Continues Ending = iota
	// Closes closes the connection in the packet's direction once the packet is delivered.
	Closes
	// Resets resets the connection and drops the packet.
	Resets
)

// Fate describes what happens to one packet. DecideStream returns it.
type Fate struct {
	// Delivery describes how the packet is delivered, never before an earlier packet of its stream.
	Delivery
	Ending Ending
}

// New returns an Impairer for ranks with the given addresses. It returns the error of Script.Check, if any.
func New(s Script, m Medium, ranks []netip.Addr) (*Impairer, error) {
	if err := s.Check(m, ranks); err != nil {
		return nil, err
	}
	im := &Impairer{seed: uint64(s.Seed), rules: make([]activeRule, len(s.Rules)), flows: make(map[direction]*flow)}
	for i, r := range s.Rules {
		from, _ := r.From.resolve(ranks) // cannot fail after Check
		to, _ := r.To.resolve(ranks)
		im.rules[i] = activeRule{r, from, to}
	}
	return im, nil
}

// flow returns the state of a direction. Each rule uses a separate random generator per direction, so that its
// decisions do not depend on traffic in other directions or on other rules.
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

// selects reports whether the rule's faults apply to a packet.
func (r *activeRule) selects(state *ruleState, now time.Duration, from, to int, k Kind) bool {
	if now < r.After || r.For > 0 && now >= r.After+r.For || !r.Packets.contains(k) ||
		r.from != nil && !r.from[from] || r.to != nil && !r.to[to] {
		return false
	}
	state.packetsSeen++
	return r.Nth.contains(state.packetsSeen)
}

// DecideDatagram decides the fate of the next datagram in a direction, sent at time now, which must not decrease from
// call to call. DecideDatagram returns the deliveries of the datagram, or none if it is lost. The slice is valid until
// the next call.
func (im *Impairer) DecideDatagram(now time.Duration, from, to int, b []byte) []Delivery {
	f, kind := im.flow(from, to), KindOf(b)
	count := &f.counts[kind]
	count.Packets++
	count.Bytes += uint64(len(b))
	im.deliveries = append(im.deliveries[:0], Delivery{Flip: -1})
	for i := range im.rules {
		r, s := &im.rules[i], &f.rules[i]
		im.next = im.next[:0]
		for _, d := range im.deliveries {
			if r.selects(s, now, from, to, kind) {
				im.next = r.applyDatagram(im.next, s, now, len(b), d, count)
			} else {
				im.next = append(im.next, d)
			}
		}
		im.deliveries, im.next = im.next, im.deliveries
	}
	return im.deliveries
}

// applyDatagram applies a rule to one delivery of a datagram, and appends the resulting deliveries to out.
func (r *activeRule) applyDatagram(out []Delivery, state *ruleState, now time.Duration, length int, delivery Delivery,
	count *Count) []Delivery {
	if r.Partition || r.Loss > 0 && r.isLost(state) {
		count.Lost++
		return out
	}
	if r.Rate > 0 {
		waits := max(state.rateFreeAt-now, 0)
		queue := DefaultQueue
		if r.Queue > 0 {
			queue = int(r.Queue)
		}
		if waits.Seconds()*float64(r.Rate)+float64(length) > float64(queue) {
			count.Overflowed++
			return out
		}
		delivery.After += r.throttle(state, now, length)
	}
	delivery = r.applyCommon(state, delivery, length, count)
	if r.Reorder > 0 && chance(state, r.Reorder) {
		count.Reordered++
		by := reorderDelay
		if r.Late.Max > 0 {
			by = r.Late.random(state.rng)
		}
		delivery.After += by
	}
	out = append(out, delivery)
	if r.Duplicate > 0 && chance(state, r.Duplicate) {
		count.Duplicated++
		delivery.After += r.Late.random(state.rng)
		out = append(out, delivery)
	}
	return out
}

// applyCommon applies the faults that affect both datagrams and streams.
func (r *activeRule) applyCommon(state *ruleState, delivery Delivery, length int, count *Count) Delivery {
	if r.Delay.Max > 0 {
		count.Delayed++
		delivery.After += r.Delay.random(state.rng)
	}
	if r.Corrupt > 0 && length > 0 && chance(state, r.Corrupt) {
		count.Corrupted++
		delivery.Flip = state.rng.IntN(8 * length)
	}
	return delivery
}

// isLost decides whether a datagram is lost. It uses the Gilbert-Elliott model, in which all packets are lost in the
// bad state and none in the good state.
func (r *activeRule) isLost(state *ruleState) bool {
	switch {
	case r.Burst == 0:
		return chance(state, r.Loss)
	case r.Loss == 100:
		return true
	case state.inBurst:
		state.inBurst = state.rng.Float64() >= 1/r.Burst
	default:
		state.inBurst = state.rng.Float64() < r.burstStartProb()
	}
	return state.inBurst
}

// throttle returns the time from now until the last byte of a packet has been sent at the rule's rate.
func (r *activeRule) throttle(s *ruleState, now time.Duration, length int) time.Duration {
	s.rateFreeAt = max(s.rateFreeAt, now) + time.Duration(float64(length)/float64(r.Rate)*float64(time.Second))
	return s.rateFreeAt - now
}

func chance(s *ruleState, p Percent) bool { return 100*s.rng.Float64() < float64(p) }

func (s Span) random(rng *rand.Rand) time.Duration {
	if s.Max == s.Min {
		return s.Min
	}
	return s.Min + time.Duration(rng.Int64N(int64(s.Max-s.Min)+1))
}

// DecideStream decides the fate of the next packet, or piece of a packet, in one direction of a stream. now is the time
// at which it is sent, and must not decrease from call to call.
func (im *Impairer) DecideStream(now time.Duration, from, to int, kind Kind, length int) Fate {
	f := im.flow(from, to)
	count := &f.counts[kind]
	count.Packets++
	count.Bytes += uint64(length)
	fate := Fate{Delivery: Delivery{Flip: -1}}
	for i := range im.rules {
		rule, state := &im.rules[i], &f.rules[i]
		if !rule.selects(state, now, from, to, kind) {
			continue
		}
		switch {
		case rule.Reset > 0 && chance(state, rule.Reset):
			count.Resets++
			fate.Ending = Resets
			return fate
		case rule.Close > 0 && chance(state, rule.Close):
			count.Closes++
			fate.Ending = Closes
		}
		if rule.Rate > 0 {
			fate.After += rule.throttle(state, now, length)
		}
		fate.Delivery = rule.applyCommon(state, fate.Delivery, length, count)
		if rule.Partition {
			count.Held++
			if rule.For == 0 {
				fate.After = Forever
				return fate
			}
			fate.After = max(fate.After, rule.After+rule.For-now)
		}
	}
	f.lastDelivery = max(f.lastDelivery, now+fate.After)
	fate.After = f.lastDelivery - now
	return fate
}

// NewConnection starts a new connection in a direction. Delays of the previous connection do not affect its packets.
func (im *Impairer) NewConnection(from, to int) {
	f := im.flow(from, to)
	f.lastDelivery = 0
	for i := range f.rules {
		f.rules[i].rateFreeAt = 0
	}
}

// Report returns the counts of packets and faults so far, sorted by direction and packet type.
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
