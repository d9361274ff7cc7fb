package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Each step has a share of the time of a run. A side whose first rounds show that it
// would take much longer does fewer rounds, or the step is cut.
const (
	// shareFactor is the share of a workload as a multiple of what it usually takes, and
	// shareLeast that of any step. Quick steps of others have quickShare.
	shareFactor = 4
	shareLeast  = 2 * time.Second
	quickShare  = 5 * time.Second
	// The pace of a step is not judged before 1 / judgedAfter of its share: the first
	// messages open connections, and neighbours take the processor for tens of ms.
	judgedAfter = 2
	// overrun is by how many times its share a step may exceed it: to begin anew takes
	// longer.
	overrun = 2
	// enough is the least number of timed rounds that has a median.
	enough = 5
	// stuckLeast is how long a side may take for a round at least.
	stuckLeast = 10 * time.Second
	// cutsMost is after how many steps in a row that are cut the others are, too.
	cutsMost = 3
)

// paceEvery is how often a program prints how far it is; in c/bench.h it is
// BENCH_PACE_EVERY.
const paceEvery = 250 * time.Millisecond

// share returns how long each step of a workload may take on a side; 0 is any time: of
// steps that a user has given, and of zrlmpid's quick ones, which are to show whether
// everything works.
func (o *Options) share(w *workload, of Kind) time.Duration {
	switch {
	case o.Steps != "", o.Quick && of == Ours:
		return 0
	case o.Quick:
		return quickShare
	}
	return max(time.Duration(shareFactor*w.weight/float64(len(w.full))*float64(time.Second)), shareLeast)
}

// pace is how far a side is in the step of n: done of all rounds, in a time.
type pace struct {
	n, done, all int
	took         time.Duration
}

func (p pace) String() string {
	return fmt.Sprintf("pace %d %d %d %.3f", p.n, p.done, p.all, p.took.Seconds())
}

func parsePace(text string) (p pace, err error) {
	var seconds float64
	if _, err := fmt.Sscanf(text, "pace %d %d %d %g", &p.n, &p.done, &p.all, &seconds); err != nil || p.done < 0 || p.done > p.all || !(seconds >= 0) || seconds > 1e6 {
		return pace{}, fmt.Errorf("%q is not how far a step is", text)
	}
	p.took = time.Duration(seconds * float64(time.Second))
	return p, nil
}

// round returns how long a round takes, on average.
func (p pace) round() time.Duration { return p.took / time.Duration(max(p.done, 1)) }

// fit returns with how many iterations a step of so many, done by so many methods in
// turn, ends within its share of time: the same if it does at this pace, or does not
// exceed it by much; 0 if they are too few for a median.
func (p pace) fit(iterations, methods int, share time.Duration) int {
	if share == 0 || p.done == 0 || p.took < share/judgedAfter || p.round()*time.Duration(p.all) <= overrun*share {
		return iterations
	}
	warmup := p.all/methods - iterations
	fewer := int(share/(p.round()*time.Duration(methods))) - warmup
	if fewer < enough {
		return 0
	}
	return min(fewer, iterations)
}

// Cut is a step that was ended before it had figures, since it would not have ended in
// its share of time.
type Cut struct {
	N int `json:"n"`
	// Message is the time of a message in µs, on average; 0 is unknown.
	Message float64 `json:"message_us,omitempty"`
	// Stuck: not one message has arrived in the time of many.
	Stuck bool `json:"stuck,omitempty"`
}

// String is what a table says in the place of the figure.
func (c *Cut) String() string {
	switch {
	case c.Stuck:
		return "stuck"
	case c.Message == 0:
		return "cut"
	}
	return "cut: " + duration(c.Message) + " a message"
}

// errSlow ends a program whose step does not end in its share of time.
var errSlow = errors.New("the step would not end in its share of time")

// watch reads what rank 0 prints while it does, and ends the program when a step would
// exceed its share of time.
type watch struct {
	job
	cancel context.CancelCauseFunc
	stuck  *time.Timer

	mu  sync.Mutex
	out bytes.Buffer
	// read is how much of it was read, and kept how much is of the steps that have
	// ended; done is how many these are, and last how far the next one is.
	read, kept, done int
	last             pace
	// isSlow: the next one is too slow, and is to be done with fewer iterations, or is
	// cut if that is 0.
	isSlow bool
	fewer  int
}

func newWatch(j job, cancel context.CancelCauseFunc) *watch {
	w := &watch{job: j, cancel: cancel}
	w.stuck = time.AfterFunc(time.Hour, w.onStuck)
	w.alive()
	return w
}

// alive has the program ended if it prints nothing for long from now on.
func (w *watch) alive() {
	if w.stuck.Stop(); w.share > 0 {
		w.stuck.Reset(max(overrun*w.share, stuckLeast))
	}
}

// onStuck ends a program that has printed nothing for long. Its figures are complete if all steps
// have ended: MPICH sometimes does not return from MPI_Finalize.
func (w *watch) onStuck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow(0)
}

// slow ends the program. Its step, if there is one left, may be done again with fewer iterations.
func (w *watch) slow(fewer int) {
	w.cancel(errSlow)
	if !w.isSlow && w.done < len(w.steps) {
		w.isSlow, w.fewer = true, fewer
	}
}

func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(b)
	w.alive()
	for {
		text := w.out.Bytes()[w.read:]
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return len(b), nil
		}
		w.read += end + 1
		if !w.isSlow {
			w.line(strings.TrimSpace(string(text[:end])))
		}
	}
}

// line is a line of a program. What a launcher prints beside is none of them.
func (w *watch) line(text string) {
	switch {
	case strings.HasPrefix(text, "verified "):
		w.done, w.kept, w.last = w.done+1, w.read, pace{}
	case strings.HasPrefix(text, "pace "):
		p, err := parsePace(text)
		if err != nil || w.done >= len(w.steps) || p.n != w.steps[w.done].n {
			return // parseOutput reports what is wrong
		}
		w.last = p
		iterations := w.steps[w.done].iterations
		if fewer := p.fit(iterations, len(w.parts), w.share); fewer != iterations {
			w.slow(fewer)
		}
	}
}

// slowStep is a step that would not have ended in its share of time, after so many that
// have ended.
type slowStep struct {
	done int
	// iterations are those with which it is to be done again; with none it is cut.
	iterations int
	cut        Cut
}

// end returns what was printed of the steps that have ended: all, unless one was too slow.
func (w *watch) end() (out []byte, slow *slowStep) {
	w.stuck.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isSlow {
		return w.out.Bytes(), nil
	}
	slow = &slowStep{done: w.done, iterations: w.fewer, cut: Cut{N: w.steps[w.done].n, Stuck: w.last.done == 0}}
	if !slow.cut.Stuck {
		slow.cut.Message = micros(w.last.round()) / float64(w.w.perRound(slow.cut.N))
	}
	return w.out.Bytes()[:w.kept], slow
}
