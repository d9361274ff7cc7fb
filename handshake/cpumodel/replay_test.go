package cpumodel

import (
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake/modeltest"
)

// TestReplayCoversAllCaptures checks that no capture is left out.
func TestReplayCoversAllCaptures(t *testing.T) {
	var names []string
	for _, r := range replays() {
		names = append(names, r.name)
	}
	modeltest.CheckCoverage(t, names)
}

// TestReplay replaces each CPU rank in every capture by the model: it must send the recorded packets, byte for byte, in
// order and in time, and the program must get the recorded words.
func TestReplay(t *testing.T) {
	for _, r := range replays() {
		t.Run(r.name, func(t *testing.T) {
			packets := modeltest.ReadCapture(t, r.name)
			if len(packets) == 0 {
				t.Fatal("the capture is empty")
			}
			for rank, calls := range r.programs {
				p := r.play(t, rank, calls, packets)
				if why, crashed := p.m.Crashed(); p.m.Busy() != r.busy || crashed {
					t.Errorf("rank %d: busy %v at the end, state %q; %s", rank, p.m.Busy(), p.m.State(), why)
				}
				if p.next != len(calls) {
					t.Errorf("rank %d: made %d calls of %d", rank, p.next, len(calls))
				}
			}
		})
	}
}

// player runs a program on a model.
type player struct {
	t     *testing.T
	m     *Model
	calls []mpiCall
	next  int
	now   time.Duration
}

// until makes the calls that are possible up to now.
func (p *player) until(now time.Duration) {
	p.t.Helper()
	for !p.m.Busy() {
		if p.next > 0 && p.calls[p.next-1].recv {
			words, done := p.m.Result()
			if d := modeltest.Diff(words, p.calls[p.next-1].words); d != "" || !done {
				p.t.Errorf("call %d: done %v; %s", p.next-1, done, d)
			}
		}
		if p.next == len(p.calls) {
			break
		}
		c := p.calls[p.next]
		at := max(p.now, c.at)
		if at > now {
			break
		}
		p.next++
		var err error
		if c.recv {
			err = p.m.Recv(at, c.peer, len(c.words))
		} else {
			err = p.m.Send(at, c.peer, c.words)
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
	p.m.Tick(now)
	p.now = now
}

func (r replay) play(t *testing.T, rank int, calls []mpiCall, packets []modeltest.RecordedPacket) *player {
	t.Helper()
	p := &player{t: t, calls: calls, m: New(Config{
		Rank:         rank,
		TimeoutDelay: r.late,
		Peers:        slices.DeleteFunc([]int{0, 1, 2}, func(x int) bool { return x == rank }),
	})}
	var want []modeltest.RecordedPacket
	for i, rec := range packets {
		p.until(rec.At)
		if rec.From == rank {
			want = append(want, rec)
		}
		if rec.To == rank && !slices.Contains(r.undelivered, i) {
			p.m.Datagram(rec.At, rec.From, rec.Bytes)
			p.until(rec.At)
		}
	}
	const slack = 15 * ms // the real rank ran as a process among others
	modeltest.CompareCapture(t, rank, sent(p.m.TakePackets()), want, slack)
	return p
}
