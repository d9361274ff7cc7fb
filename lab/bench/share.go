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

// Each step has a share of the time of a run. If the first rounds of a side show that it would take much longer, the
// step is run with fewer iterations or cut.
const (
	// shareFactor is the ratio of a workload's share to its usual duration, and shareLeast the minimum share of a step.
	// Quick steps of other sides have quickShare.
	shareFactor = 4
	shareLeast  = 2 * time.Second
	quickShare  = 5 * time.Second
	// The pace of a step is not judged before 1 / judgedAfter of its share: the first messages open connections, and
	// neighbours may take the processor for tens of ms.
	judgedAfter = 2
	// overrun is the factor by which a step may exceed its share, as starting over would take longer.
	overrun = 2
	// enough is the minimum number of timed rounds for a median.
	enough = 5
	// stuckLeast is the minimum time that a side may take for a round.
	stuckLeast = 10 * time.Second
	// cutsMost is the number of consecutive cut steps after which all further steps are cut, too.
	cutsMost = 3
)

// paceEvery is the interval at which a program prints its progress. In c/bench.h it is BENCH_PACE_EVERY.
const paceEvery = 250 * time.Millisecond

// share returns the time that each step of a workload may take on a side, or 0 for no limit. Steps given by a user have
// no limit, and neither have zrlmpid's quick steps, which only check that everything works.
func (o *Options) share(w *workload, of Kind) time.Duration {
	switch {
	case o.Steps != "", o.Quick && of == Ours:
		return 0
	case o.Quick:
		return quickShare
	}
	return max(time.Duration(shareFactor*w.weight/float64(len(w.full))*float64(time.Second)), shareLeast)
}

// pace is the progress of a side in the step of n: done of all rounds, and the time taken.
type pace struct {
	n, done, all int
	took         time.Duration
}

func (p pace) String() string {
	return fmt.Sprintf("pace %d %d %d %.3f", p.n, p.done, p.all, p.took.Seconds())
}

func parsePace(text string) (p pace, err error) {
	var seconds float64
	if _, err := fmt.Sscanf(text, "pace %d %d %d %g", &p.n, &p.done, &p.all, &seconds); err != nil || p.done < 0 ||
		p.done > p.all || !(seconds >= 0) || seconds > 1e6 {
		return pace{}, fmt.Errorf("%q is not how far a step is", text)
	}
	p.took = time.Duration(seconds * float64(time.Second))
	return p, nil
}

// round returns the average time of a round.
func (p pace) round() time.Duration { return p.took / time.Duration(max(p.done, 1)) }

// fit returns the number of iterations with which a step, run by several methods in turn, stays within its share of
// time. It returns the same number if the step is expected to exceed its share by little or not at all, and 0 if too
// few iterations would remain for a median.
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

// Cut is a step that was stopped without figures, as it would have exceeded its share of time.
type Cut struct {
	N int `json:"n"`
	// Message is the average time of a message in µs, or 0 if unknown.
	Message float64 `json:"message_us,omitempty"`
	// Stuck means that no message was received in the time of many.
	Stuck bool `json:"stuck,omitempty"`
}

// String returns the text that a table shows in place of the figure.
func (c *Cut) String() string {
	switch {
	case c.Stuck:
		return "stuck"
	case c.Message == 0:
		return "cut"
	}
	return "cut: " + duration(c.Message) + " a message"
}

// errSlow is the cause of stopping a program whose step exceeds its share of time.
var errSlow = errors.New("the step would not end in its share of time")

// watch reads the output of rank 0 while it runs, and stops the program when a step would exceed its share of time.
type watch struct {
	job
	cancel context.CancelCauseFunc
	stuck  *time.Timer

	mu  sync.Mutex
	out bytes.Buffer
	// read is the length of the output that was processed, and kept the length of the output of complete steps. done is
	// the number of complete steps, and last the progress of the next one.
	read, kept, done int
	last             pace
	// isSlow means that the next step is too slow. It is run again with fewer iterations, or cut if fewer is 0.
	isSlow bool
	fewer  int
}

func newWatch(j job, cancel context.CancelCauseFunc) *watch {
	w := &watch{job: j, cancel: cancel}
	w.stuck = time.AfterFunc(time.Hour, w.onStuck)
	w.alive()
	return w
}

// alive restarts the timer that stops a silent program.
func (w *watch) alive() {
	if w.stuck.Stop(); w.share > 0 {
		w.stuck.Reset(max(overrun*w.share, stuckLeast))
	}
}

// onStuck stops a program that has been silent for too long. Its figures are complete if all steps are: MPICH sometimes
// does not return from MPI_Finalize.
func (w *watch) onStuck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.slow(0)
}

// slow stops the program. Its current step, if any, may be repeated with fewer iterations.
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

// line processes a line of output. Lines added by a launcher are ignored.
func (w *watch) line(text string) {
	switch {
	case strings.HasPrefix(text, "verified "):
		w.done, w.kept, w.last = w.done+1, w.read, pace{}
	case strings.HasPrefix(text, "pace "):
		p, err := parsePace(text)
		if err != nil || w.done >= len(w.steps) || p.n != w.steps[w.done].n {
			return // parseOutput reports the problem
		}
		w.last = p
		iterations := w.steps[w.done].iterations
		if fewer := p.fit(iterations, len(w.parts), w.share); fewer != iterations {
			w.slow(fewer)
		}
	}
}

// slowStep is a step that would have exceeded its share of time, after a number of complete steps.
type slowStep struct {
	done int
	// iterations is the number of iterations to repeat it with. If it is 0, the step is cut.
	iterations int
	cut        Cut
}

// end returns the output of the complete steps: of all, unless one was too slow.
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
