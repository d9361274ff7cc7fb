package extended

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// The virtual world: programs that send, receive and cancel, over a network with all kinds of faults.

var worlds = flag.Int("worlds", 100, "how many random worlds to run")
var worldSeed = flag.Int("world", -1, "the one random world to run, with its transcript")

// weather is the set of faults of a network.
type weather struct {
	loss, dup, late, flip float64
	delay                 time.Duration // maximum delay of late packets
}

func (wt weather) fault(rng *rand.Rand) func(int, int, []byte) []fate {
	one := func(b []byte) fate {
		var f fate
		if rng.Float64() < wt.late {
			f.delay = time.Duration(rng.Int64N(int64(wt.delay)))
		}
		if rng.Float64() < wt.flip {
			f.flip = 1 + rng.IntN(8*len(b))
		}
		return f
	}
	return func(_, _ int, b []byte) []fate {
		if rng.Float64() < wt.loss {
			return nil
		}
		fates := []fate{one(b)}
		if rng.Float64() < wt.dup {
			fates = append(fates, one(b))
		}
		return fates
	}
}

func pick[T any](rng *rand.Rand, from ...T) T { return from[rng.IntN(len(from))] }

func randomConfig(rng *rand.Rand) Config {
	return Config{
		MaxPayload:  pick(rng, 1, 7, 100, 1344, 1344, 32768, 65435),
		EagerLimit:  pick(rng, -1, 1, 100, 16384, 16384),
		Messages:    pick(rng, 1, 2, 5, 100, 65536),
		EagerBytes:  pick(rng, 1, 1000, 1<<20),
		Window:      pick(rng, 1, 4, 30, 512),
		WindowBytes: pick(rng, 0, 0, 1, 3000, 140000),
		Reliable:    rng.IntN(4) == 0,

		HeaderChecksum: rng.IntN(4) == 0,
		Seed:           rng.Uint64(),
		firstPacket:    pick[uint32](rng, 1, 1<<32-20, 1<<31-20), firstMessage: pick[uint32](rng, 1, 1<<32-5, 1<<31-5),
	}
}

// traffic is the set of operations posted in one direction.
type traffic struct {
	sends map[uint32][]*simSend // by tag
	recvs map[uint32][]*simRecv
	whole int // minimum number of packets
}

// plan posts the operations of a direction at random times.
func plan(w *world, rng *rand.Rand, from int, messages int, span time.Duration) *traffic {
	tr := &traffic{sends: map[uint32][]*simSend{}, recvs: map[uint32][]*simRecv{}}
	payload := max(w.nodes[from].cfg.MaxPayload, 1)
	for range messages {
		n := pick(rng, 0, 1, 5, rng.IntN(100), rng.IntN(2000), rng.IntN(300*min(payload, 1344)))
		n = min(n, 300*payload)
		tag := uint32(rng.IntN(3))
		data := pattern(n, rng.Uint64())
		sync := rng.IntN(6) == 0
		tr.whole += n/payload + 3
		room := int64(n)
		if rng.IntN(5) == 0 {
			room = rng.Int64N(int64(n) + 10)
		}
		when := time.Duration(rng.Int64N(int64(span)))
		taken := rng.IntN(8) == 0
		partial := n > 0 && rng.IntN(5) == 0
		w.at(when, from, func() {
			s := w.nodes[from].send(data, SendOp{Tag: tag, Sync: sync, Partial: partial})
			tr.sends[tag] = append(tr.sends[tag], s)
			if partial {
				arrive(w, rng, from, s, span)
			}
			if taken {
				w.at(w.now+time.Duration(rng.Int64N(int64(span))), from, func() {
					if !s.done {
						w.nodes[from].cancel(s.op.ID)
					}
				})
			}
		})
		w.at(time.Duration(rng.Int64N(int64(span))), 1-from, func() {
			tr.recvs[tag] = append(tr.recvs[tag], w.nodes[1-from].recv(tag, max(room, int64(n/2))))
		})
	}
	return tr
}

// arrive makes the payload of a send available in pieces, and sometimes not completely.
func arrive(w *world, rng *rand.Rand, from int, s *simSend, span time.Duration) {
	at := w.now
	for bytes := int64(0); bytes < int64(len(s.data)); {
		bytes = min(bytes+1+rng.Int64N(int64(len(s.data))), int64(len(s.data)))
		at += time.Duration(rng.Int64N(int64(span)))
		if rng.IntN(8) == 0 {
			w.at(at, from, func() { w.nodes[from].abort(s) })
			return
		}
		w.at(at, from, func() { w.nodes[from].ready(s, bytes) })
	}
}

// check verifies that every send is done and every message was delivered once, in order and intact.
func (tr *traffic) check() error {
	var bad []error
	for tag, sends := range tr.sends {
		i := 0
		for _, s := range sends {
			switch {
			case s.gone || errors.Is(s.err, ErrCanceled):
				continue
			case errors.Is(s.err, ErrAborted):
				if r := tr.recvs[tag][i]; r.message == nil || !errors.Is(r.message.lost, ErrAborted) {
					bad = append(bad, fmt.Errorf("receive %d of tag %d: its message was aborted, and it does not know",
						i, tag))
				}
				i++
				continue
			case !s.done || s.err != nil:
				bad = append(bad, fmt.Errorf("send %d: ended %v, %w", s.op.ID, s.done, s.err))
			}
			if err := intact(tr.recvs[tag][i], s.data); err != nil {
				bad = append(bad, fmt.Errorf("receive %d of tag %d: %w", i, tag, err))
			}
			i++
		}
		for _, r := range tr.recvs[tag][i:] {
			if r.message != nil && !errors.Is(r.message.lost, ErrCanceled) {
				bad = append(bad, fmt.Errorf("a receive of tag %d got a message too many", tag))
			}
		}
	}
	return errors.Join(bad...)
}

// quiet verifies that no state is left in a Conn.
func quiet(n *node) error {
	s := n.conn.Stats()
	at, ok := n.conn.Deadline()
	if n.conn.Busy() || s.QueuedSends+s.Begun+s.OpenMessages+s.HeldPackets+s.InFlight+s.ToRetransmit > 0 || ok {
		return fmt.Errorf("rank %d is not at rest: deadline %v %v, %+v", n.rank, at, ok, s)
	}
	return nil
}

func TestWorld(t *testing.T) {
	first, last := 0, *worlds
	if testing.Short() {
		last = 50
	}
	if *worldSeed >= 0 {
		first, last = *worldSeed, *worldSeed+1
	}
	var most float64
	for seed := first; seed < last; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 1))
		cfg := randomConfig(rng)
		if seed%5 < 2 {
			cfg.CreditPool = NewCreditPool(40)
		}
		w := newWorld(cfg)
		if *worldSeed >= 0 {
			w.log = os.Stdout
			t.Logf("%+v", w.nodes[0].conn.Config())
		}
		wt := weather{delay: pick(rng, 10*time.Microsecond, time.Millisecond, 100*time.Millisecond)}
		if seed%4 > 0 {
			wt.loss, wt.dup, wt.flip = pick(rng, 0, 0.01, 0.1, 0.3), pick(rng, 0, 0.05, 0.5), pick(rng, 0, 0.01)
			wt.late = pick(rng, 0, 0.01, 0.5)
			if w.nodes[0].cfg.HeaderChecksum {
				wt.flip = 0 // without checksums over the payload, no corruption
			}
		}
		w.fault = wt.fault(rng)
		if seed%3 == 0 {
			fetching := rand.New(rand.NewPCG(uint64(seed), 2))
			w.fetch = func() bool { return fetching.IntN(4) > 0 }
		}
		if seed%2 == 0 {
			resting := rand.New(rand.NewPCG(uint64(seed), 3))
			w.rests = func() bool { return resting.IntN(4) > 0 }
		}
		span := pick(rng, time.Microsecond, time.Millisecond, 500*time.Millisecond)
		messages := 1 + rng.IntN(60)
		trs := []*traffic{plan(w, rng, 0, messages, span), plan(w, rng, 1, messages/3, span)}
		w.run(3 * time.Hour)
		err := errors.Join(w.err(), quiet(w.nodes[0]), quiet(w.nodes[1]), trs[0].check(), trs[1].check())
		if err != nil {
			t.Fatalf("world %d, %+v, %+v: %v", seed, w.nodes[0].cfg, wt, err)
		}
		// No storms: losses and duplicates are not multiplied.
		bound := float64(trs[0].whole+trs[1].whole+20) / (1 - wt.loss)
		ratio := float64(w.sent[0]+w.sent[1]) / bound
		most = max(most, ratio)
		if ratio > 6 {
			t.Errorf("world %d: %d packets where %.0f do, %+v, %+v", seed, w.sent[0]+w.sent[1], bound, w.nodes[0].cfg,
				wt)
		}
	}
	t.Logf("at most %.2f times the packets that it takes", most)
}
