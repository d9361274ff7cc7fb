package extended

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"
)

// Worlds in which ranks are restarted or closed, and the network fails for longer than any timeout. Messages may be
// lost, with an error, but none is delivered twice, out of order or corrupt; every send ends; and after the failures
// the two ranks work again without intervention.

// letter returns a message that contains the rank and epoch of its sender, and its position among the messages with its
// tag.
func letter(from, epoch, place, n int) []byte {
	b := pattern(max(n, 12), uint64(from)<<40|uint64(epoch)<<20|uint64(place))
	binary.LittleEndian.PutUint32(b, uint32(from))
	binary.LittleEndian.PutUint32(b[4:], uint32(epoch))
	binary.LittleEndian.PutUint32(b[8:], uint32(place))
	return b
}

// epochs is the traffic of a world and its outcome.
type epochs struct {
	*world
	rng   *rand.Rand
	cfg   Config
	cut   bool
	nodes [2][]*node
	data  map[[3]int][]byte // by sender, epoch and position
}

// babble posts sends and receives on both ranks at random times from now on.
func (l *epochs) babble(messages int, span time.Duration) {
	for range messages {
		from, n, sync := l.rng.IntN(2), pick(l.rng, 0, 100, 3000, 20000), l.rng.IntN(6) == 0
		l.at(l.now+time.Duration(l.rng.Int64N(int64(span))), from, func() {
			node := l.world.nodes[from]
			place := len(node.posted)
			b := letter(from, node.epochs, place, n)
			l.data[[3]int{from, node.epochs, place}] = b
			node.send(b, SendOp{Sync: sync})
		})
		l.at(l.now+time.Duration(l.rng.Int64N(int64(span))), 1-from, func() { l.receive(1 - from) })
	}
}

func (l *epochs) receive(rank int) {
	n := l.world.nodes[rank]
	n.all = append(n.all, n.recv(0, 20000))
}

// trouble schedules a failure at a random time from now on.
func (l *epochs) trouble(span time.Duration) {
	at, rank := l.now+time.Duration(l.rng.Int64N(int64(span))), l.rng.IntN(2)
	switch l.rng.IntN(4) {
	case 0:
		l.at(at, rank, func() { l.restart(rank) })
	case 1:
		l.at(at, rank, func() {
			n := l.world.nodes[rank]
			n.acts = n.conn.Close(l.now, n.acts)
			n.do()
			l.restart(rank)
		})
	default:
		l.at(at, rank, func() { l.cut = true })
		l.at(at+time.Duration(l.rng.Int64N(int64(3*time.Second))), rank, func() { l.cut = false })
	}
}

func (l *epochs) restart(rank int) {
	l.nodes[rank] = append(l.nodes[rank], l.start(rank, l.cfg))
}

// check verifies the messages received in all epochs.
func (l *epochs) check() error {
	for rank, nodes := range l.nodes {
		for _, n := range nodes {
			last := [3]int{-1, -1, -1}
			for _, r := range n.all {
				if !r.done() || r.message.lost != nil {
					continue
				}
				got := r.data()
				if len(got) < 12 {
					return fmt.Errorf("rank %d got %d bytes", rank, len(got))
				}
				at := func(i int) int { return int(binary.LittleEndian.Uint32(got[i:])) }
				id := [3]int{at(0), at(4), at(8)}
				if err := intact(r, l.data[id]); err != nil {
					return fmt.Errorf("rank %d: %v: %w", rank, id, err)
				}
				if id[1] < last[1] || id[1] == last[1] && id[2] <= last[2] {
					return fmt.Errorf("rank %d got %v after %v", rank, id, last)
				}
				last = id
			}
		}
	}
	return nil
}

// ended verifies that every send of the running ranks is done.
func (l *epochs) ended() error {
	var bad []error
	for _, n := range l.world.nodes {
		for _, s := range n.posted {
			if !s.done {
				bad = append(bad, fmt.Errorf("rank %d: send %d has not ended", n.rank, s.op.ID))
			}
			for _, known := range []error{ErrTimeout, ErrSession} {
				if errors.Is(s.err, known) {
					s.err = nil
				}
			}
			if s.err != nil {
				bad = append(bad, s.err)
			}
		}
	}
	return errors.Join(bad...)
}

func TestEpochs(t *testing.T) {
	first, last := 0, *worlds
	if testing.Short() {
		last = 50
	}
	if *worldSeed >= 0 {
		first, last = *worldSeed, *worldSeed+1
	}
	var timeouts, sessions, delivered int
	for seed := first; seed < last; seed++ {
		rng := rand.New(rand.NewPCG(uint64(seed), 2))
		cfg := randomConfig(rng)
		cfg.MaxPayload, cfg.Window = pick(rng, 100, 1344), pick(rng, 4, 512)
		cfg.Messages = pick(rng, 2, 65536)
		cfg.Timing = DefaultTiming(cfg.Reliable)
		cfg.Timing.UnreachableAfter = pick(rng, 100*time.Millisecond, time.Second)
		l := &epochs{world: newWorld(cfg), rng: rng, cfg: cfg, data: map[[3]int][]byte{}}
		if seed%2 == 0 {
			resting := rand.New(rand.NewPCG(uint64(seed), 3))
			l.rests = func() bool { return resting.IntN(4) > 0 }
		}
		if *worldSeed >= 0 {
			l.log = os.Stdout
		}
		l.nodes = [2][]*node{{l.world.nodes[0]}, {l.world.nodes[1]}}
		wt := weather{delay: pick(rng, time.Microsecond, 100*time.Millisecond), loss: pick(rng, 0, 0.05),
			dup: pick(rng, 0, 0.2), late: pick(rng, 0, 0.3)}
		fault := wt.fault(rng)
		l.fault = func(from, nth int, b []byte) []fate {
			if l.cut {
				return nil
			}
			return fault(from, nth, b)
		}
		l.babble(20+rng.IntN(40), 5*time.Second)
		for range 1 + rng.IntN(6) {
			l.trouble(5 * time.Second)
		}
		l.run(30 * time.Second)
		l.now = max(l.now, 30*time.Second)
		// Calm: waiting messages get receives, and new messages succeed.
		l.cut = false
		l.fault = func(int, int, []byte) []fate { return onTime }
		for rank := range 2 {
			for range 100 {
				l.receive(rank)
			}
		}
		l.wait(30 * time.Second)
		err := errors.Join(l.err(), l.check(), l.ended())
		if err == nil {
			for rank := range 2 {
				n := l.world.nodes[rank]
				s := n.send(letter(rank, n.epochs, len(n.posted), 100), SendOp{Sync: true, Tag: 7})
				l.world.nodes[1-rank].recv(7, 100)
				l.wait(5 * time.Second)
				// One more may be lost until a rank detects that the other one has declared it unreachable.
				if !s.done || s.err != nil && !errors.Is(s.err, ErrSession) && !errors.Is(s.err, ErrTimeout) {
					err = errors.Join(err, fmt.Errorf("rank %d: after the trouble a send ends %v, %w", rank, s.done,
						s.err))
				}
				s = n.send(letter(rank, n.epochs, len(n.posted), 100), SendOp{Sync: true, Tag: 8})
				l.world.nodes[1-rank].recv(8, 100)
				l.wait(5 * time.Second)
				if !s.done || s.err != nil {
					err = errors.Join(err, fmt.Errorf("rank %d: after the trouble a second send ends %v, %w", rank,
						s.done, s.err))
				}
			}
			err = errors.Join(err, l.err(), quiet(l.world.nodes[0]), quiet(l.world.nodes[1]))
		}
		if err != nil {
			t.Fatalf("world %d, %+v, %+v: %v", seed, cfg, wt, err)
		}
		for _, nodes := range l.nodes {
			for _, n := range nodes {
				timeouts += n.notes[Unreachable]
				sessions += n.notes[SessionChanged] + n.notes[ClosedByPeer]
				for _, r := range n.all {
					if r.done() && r.message.lost == nil {
						delivered++
					}
				}
			}
		}
	}
	t.Logf("%d messages delivered, %d sessions ended, %d peers declared unreachable", delivered, sessions, timeouts)
	if *worldSeed < 0 && (timeouts == 0 || sessions == 0) {
		t.Error("nothing bad happened")
	}
}
