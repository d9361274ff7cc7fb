package cpumodel

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestReplayCoversAllCaptures keeps a capture from being left out unseen.
func TestReplayCoversAllCaptures(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(captures, "*.pcap"))
	if err != nil {
		t.Fatal(err)
	}
	var have, want []string
	for _, f := range files {
		have = append(have, filepath.Base(f))
	}
	for _, r := range replays() {
		want = append(want, r.name+".pcap")
	}
	slices.Sort(want)
	if !slices.Equal(have, want) {
		t.Fatalf("captures %q, replays %q", have, want)
	}
}

// TestReplay puts the model in the place of each CPU rank in every capture: it
// must send the recorded packets, byte for byte, in order and in time, and the
// program must get the recorded words.
func TestReplay(t *testing.T) {
	for _, r := range replays() {
		t.Run(r.name, func(t *testing.T) {
			packets := readCapture(t, r.name)
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

// until makes the calls that can be made up to now.
func (p *player) until(now time.Duration) {
	p.t.Helper()
	for !p.m.Busy() {
		if p.next > 0 && p.calls[p.next-1].recv {
			words, done := p.m.Result()
			if d := diff(words, p.calls[p.next-1].words); d != "" || !done {
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

func (r replay) play(t *testing.T, rank int, calls []mpiCall, packets []recorded) *player {
	t.Helper()
	p := &player{t: t, calls: calls, m: New(Config{
		Rank:  rank,
		Late:  r.late,
		Peers: slices.DeleteFunc([]int{0, 1, 2}, func(x int) bool { return x == rank }),
	})}
	var want []recorded
	for i, rec := range packets {
		p.until(rec.at)
		if rec.from == rank {
			want = append(want, rec)
		}
		if rec.to == rank && !slices.Contains(r.undelivered, i) {
			p.m.Datagram(rec.at, rec.from, rec.b)
			p.until(rec.at)
		}
	}
	r.compare(t, rank, p.m.Out(), want)
	return p
}

func (r replay) compare(t *testing.T, rank int, got []Packet, want []recorded) {
	t.Helper()
	const slack = 15 * ms // the real one ran as a process among others
	for i, w := range want {
		if i >= len(got) {
			t.Fatalf("rank %d: packet %d at %v is missing: %s", rank, i, w.at, describe(w.b))
		}
		g := got[i]
		if g.To != w.to || !bytes.Equal(g.Bytes, w.b) {
			t.Fatalf("rank %d: packet %d: got %s to %d at %v, recorded %s to %d at %v",
				rank, i, describe(g.Bytes), g.To, g.At, describe(w.b), w.to, w.at)
		}
		if late := w.at - g.At; late < 0 || late > slack {
			t.Errorf("rank %d: packet %d (%s): left at %v, recorded at %v", rank, i, describe(w.b), g.At, w.at)
		}
	}
	if len(got) > len(want) {
		t.Fatalf("rank %d: sent %s at %v, which was not recorded", rank, describe(got[len(want)].Bytes), got[len(want)].At)
	}
}
