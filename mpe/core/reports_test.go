package core

import (
	"errors"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/extended"
)

// reporting starts n ranks. While make is true, rank 0 makes reports, whose texts are "1", "2" and so on.
func reporting(t *testing.T, n int, peer func(local, remote int) Peer) (w *world, made *int, make *bool) {
	w = newCores(t, 1, n, faults{}, peer)
	made, make = new(int), new(true)
	w.cores[0].cfg.Reports = true
	w.ports[0].report = func() {
		*made++
		if *make {
			w.event(0, func(e *Core) { e.Reports.Deliver([]byte(strconv.Itoa(*made))) })
		}
	}
	return w, made, make
}

// ask asks others for reports on behalf of a rank, and returns their answers.
func (w *world) ask(t *testing.T, rank int, others ...int) []PeerReport {
	t.Helper()
	var q *Question
	over := false
	w.event(rank, func(e *Core) { q = e.Reports.Ask(others, func() { over = true }) })
	for !over && w.step() {
	}
	if !over {
		t.Fatal("the question does not end")
	}
	return q.Reports
}

// TestReportsAreFresh checks that a new report is made if the last one is old, unless one is already being made.
func TestReportsAreFresh(t *testing.T) {
	for _, tt := range []struct {
		name string
		// after is the time since the last report was made.
		after  time.Duration
		making bool
		state  runState
		off    bool
		made   int
		waits  bool
	}{
		{name: "at once", made: 0},
		{name: "just not too old", after: reportEvery - 1, made: 0},
		{name: "too old", after: reportEvery, made: 1},
		{name: "much too old", after: time.Hour, made: 1},
		{name: "while it is made", after: time.Hour, making: true, made: 0, waits: true},
		{name: "closing", after: time.Hour, state: draining, made: 0},
		{name: "without reports", after: time.Hour, off: true, made: 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, made, _ := reporting(t, 3, extendedPeer)
			if got := w.ask(t, 1, 0); string(got[0].Report) != "1" || got[0].Err != nil {
				t.Fatalf("%+v", got)
			}
			e := w.cores[0]
			w.now = e.Reports.madeAt + tt.after
			e.Reports.inProgress, e.state, e.cfg.Reports = tt.making, tt.state, !tt.off
			w.event(0, func(e *Core) {
				e.touch(e.peers.at(2)) // by the packet
				e.Reports.onQuestion(e.peers.at(2).extended)
				e.Reports.onQuestion(e.peers.at(2).extended) // the same question
			})
			if *made != 1+tt.made || len(e.Reports.askers) > 0 != tt.waits || len(e.Reports.askers) > 1 {
				t.Errorf("%d more were made, not %d; %d wait", *made-1, tt.made, len(e.Reports.askers))
			}
		})
	}
}

// TestReports checks that each question gets an answer or an error.
func TestReports(t *testing.T) {
	mixed := func(local, remote int) Peer {
		if local+remote == 3 { // ranks 1 and 2
			return software(local, remote)
		}
		return extendedPeer(local, remote)
	}
	w, made, makes := reporting(t, 3, mixed)
	texts := func(reports []PeerReport) (texts []string) {
		for _, r := range reports {
			texts = append(texts, strconv.Itoa(r.Rank)+": "+string(r.Report))
		}
		return texts
	}
	got := w.ask(t, 1, 2, 0)
	if want := []string{"2: ", "0: 1"}; !slices.Equal(texts(got), want) || !errors.Is(got[0].Err, ErrNotExtended) ||
		got[1].Err != nil {
		t.Errorf("%v, not %v; %v, %v", texts(got), want, got[0].Err, got[1].Err)
	}
	if got := w.ask(t, 1); len(got) != 0 {
		t.Errorf("%+v of no rank", got)
	}
	if got := w.ask(t, 2, 0); string(got[0].Report) != "1" || *made != 1 {
		t.Errorf("%+v, %d made", got, *made)
	}
	w.until(w.now + time.Second)
	*makes = false
	if got := w.ask(t, 1, 0); !errors.Is(got[0].Err, extended.ErrNoReport) || *made != 2 {
		t.Errorf("%+v, %d made", got, *made)
	}
	*makes = true
	w.event(0, func(e *Core) { e.Reports.Deliver([]byte("late")) })
	w.until(w.now + time.Second)
	if got := w.ask(t, 1, 0); string(got[0].Report) != "3" {
		t.Errorf("%+v", got)
	}
	w.event(1, (*Core).Drain)
	if got := w.ask(t, 1, 0); !errors.Is(got[0].Err, ErrClosed) {
		t.Errorf("%+v of a rank that closes", got)
	}
}

// TestForget checks that a forgotten question wakes no caller, and that another question to the same rank gets its
// answer.
func TestForget(t *testing.T) {
	w, _, _ := reporting(t, 3, func(local, remote int) Peer {
		if local+remote == 3 {
			return software(local, remote)
		}
		return extendedPeer(local, remote)
	})
	w.event(1, func(e *Core) {
		e.Reports.Cancel(e.Reports.Ask([]int{2, 0}, func() { t.Error("the question that was forgotten is done") }))
	})
	if got := w.ask(t, 1, 0); string(got[0].Report) != "1" {
		t.Errorf("%+v", got)
	}
}
