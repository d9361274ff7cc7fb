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

// Each step has a share of the time of a run. If a side's first rounds show that the step would take much longer, the
// step runs with fewer iterations or is cut.
const (
	// shareFactor is the ratio of a workload's share of time to its usual duration, and minBudget the minimum share of
	// a step. With Options.Quick, each step has the share quickShare, except on sides of zrlmpid.
	shareFactor = 4
	minBudget   = 2 * time.Second
	quickShare  = 5 * time.Second
	// A step is judged only after 1 / judgeDivisor of its share of time has passed, because the first messages open
	// connections, and neighbours may take the processor for tens of ms.
	judgeDivisor = 2
	// overrunFactor is the factor by which a running step may exceed its share of time. It is above 1 because starting
	// over would take longer.
	overrunFactor = 2
	// minRounds is the minimum number of timed rounds from which a median is taken.
	minRounds = 5
	// minStuckTime is the minimum time without output after which a program is stopped.
	minStuckTime = 10 * time.Second
	// After cutsMost consecutive cuts, all further steps are cut as well.
	cutsMost = 3
)

// paceEvery is the interval at which a program prints its progress. Its counterpart in c/bench.h is BENCH_PACE_EVERY.
const paceEvery = 250 * time.Millisecond

// stepBudget returns the time limit of each step of a workload on a side, or 0 for no limit. There is no limit for
// steps given by the user, and none for zrlmpid's quick steps, which only check that everything works.
func (o *Options) stepBudget(w *workload, of Kind) time.Duration {
	switch {
	case o.Steps != "", o.Quick && of == Ours:
		return 0
	case o.Quick:
		return quickShare
	}
	return max(time.Duration(shareFactor*w.weight/float64(len(w.fullSteps))*float64(time.Second)), minBudget)
}

// stepProgress describes how far a side has progressed in step n: it has completed roundsDone of all rounds in the
// elapsed time.
type stepProgress struct {
	n, roundsDone, all int
	elapsed            time.Duration
}

func (p stepProgress) String() string {
	return fmt.Sprintf("pace %d %d %d %.3f", p.n, p.roundsDone, p.all, p.elapsed.Seconds())
}

func parseProgress(text string) (progress stepProgress, err error) {
	var seconds float64
	if _, err := fmt.Sscanf(text, "pace %d %d %d %g", &progress.n, &progress.roundsDone, &progress.all,
		&seconds); err != nil || progress.roundsDone < 0 ||
		progress.roundsDone > progress.all || !(seconds >= 0) || seconds > 1e6 {
		return stepProgress{}, fmt.Errorf("%q is not how far a step is", text)
	}
	progress.elapsed = time.Duration(seconds * float64(time.Second))
	return progress, nil
}

// roundTime returns the average time of a round.
func (p stepProgress) roundTime() time.Duration {
	return p.elapsed / time.Duration(max(p.roundsDone, 1))
}

// fitIterations returns the number of iterations with which a step, run with several methods in turn, stays within its
// share of time. It returns iterations unchanged if the step is not expected to exceed its share by much, and 0 if too
// few iterations would remain for a median.
func (p stepProgress) fitIterations(iterations, methods int, share time.Duration) int {
	if share == 0 || p.roundsDone == 0 || p.elapsed < share/judgeDivisor ||
		p.roundTime()*time.Duration(p.all) <= overrunFactor*share {
		return iterations
	}
	warmup := p.all/methods - iterations
	fewer := int(share/(p.roundTime()*time.Duration(methods))) - warmup
	if fewer < minRounds {
		return 0
	}
	return min(fewer, iterations)
}

// CutStep describes a step that was stopped because it would have exceeded its share of time. There are no figures for
// it.
type CutStep struct {
	N int `json:"n"`
	// Message is the average time that a message took before the step was stopped, in µs, or 0 if unknown.
	Message float64 `json:"message_us,omitempty"`
	// Stuck means that not even the first rounds were completed in the time allowed.
	Stuck bool `json:"stuck,omitempty"`
}

// String returns the text that tables show in place of a figure.
func (c *CutStep) String() string {
	switch {
	case c.Stuck:
		return "stuck"
	case c.Message == 0:
		return "cut"
	}
	return "cut: " + formatDuration(c.Message) + " a message"
}

// errSlow is the reason given when a program is stopped because its step would exceed its share of time.
var errSlow = errors.New("the step would not end in its share of time")

// watch reads the output of rank 0 while the program runs. It stops the program if a step would exceed its share of
// time.
type watch struct {
	job
	cancel     context.CancelCauseFunc
	stuckTimer *time.Timer

	mu  sync.Mutex
	out bytes.Buffer
	// read is the length of the output processed so far, and keptLen the length of the part that belongs to complete
	// steps. stepsDone is the number of complete steps, and progress the progress of the next one.
	read, keptLen, stepsDone int
	progress                 stepProgress
	// isSlow means that the step after the completed ones is too slow. It is to be repeated with fewer iterations:
	// their number is in the field fewer. If that is 0, the step is cut.
	isSlow bool
	fewer  int
}

func newWatch(j job, cancel context.CancelCauseFunc) *watch {
	w := &watch{job: j, cancel: cancel}
	w.stuckTimer = time.AfterFunc(time.Hour, w.onStuck)
	w.resetStuckTimer()
	return w
}

// resetStuckTimer restarts the timer that stops a program if it prints nothing.
func (w *watch) resetStuckTimer() {
	if w.stuckTimer.Stop(); w.budget > 0 {
		w.stuckTimer.Reset(max(overrunFactor*w.budget, minStuckTime))
	}
}

// onStuck stops a program that has printed nothing for too long. If all steps are complete, the figures count
// nevertheless: MPICH sometimes does not return from MPI_Finalize.
func (w *watch) onStuck() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.stopSlow(0)
}

// stopSlow stops the program. If a step was running, it may be repeated with fewer iterations.
func (w *watch) stopSlow(fewer int) {
	w.cancel(errSlow)
	if !w.isSlow && w.stepsDone < len(w.steps) {
		w.isSlow, w.fewer = true, fewer
	}
}

func (w *watch) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.out.Write(b)
	w.resetStuckTimer()
	for {
		text := w.out.Bytes()[w.read:]
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return len(b), nil
		}
		w.read += end + 1
		if !w.isSlow {
			w.processLine(strings.TrimSpace(string(text[:end])))
		}
	}
}

// processLine processes a line of output. It ignores lines from a launcher.
func (w *watch) processLine(text string) {
	switch {
	case strings.HasPrefix(text, "verified "):
		w.stepsDone, w.keptLen, w.progress = w.stepsDone+1, w.read, stepProgress{}
	case strings.HasPrefix(text, "pace "):
		progress, err := parseProgress(text)
		if err != nil || w.stepsDone >= len(w.steps) || progress.n != w.steps[w.stepsDone].n {
			return // parseOutput reports the problem
		}
		w.progress = progress
		iterations := w.steps[w.stepsDone].iterations
		if fewer := progress.fitIterations(iterations, len(w.parts), w.budget); fewer != iterations {
			w.stopSlow(fewer)
		}
	}
}

// slowStep describes the first step that would have exceeded its share of time. done is the number of steps completed
// before it.
type slowStep struct {
	done int
	// iterations is the number of iterations with which to repeat the step. If it is 0, the step is cut.
	iterations int
	cut        CutStep
}

// finish returns the output of the complete steps. If a step was too slow, it also returns that step.
func (w *watch) finish() (out []byte, slow *slowStep) {
	w.stuckTimer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isSlow {
		return w.out.Bytes(), nil
	}
	slow = &slowStep{done: w.stepsDone, iterations: w.fewer,
		cut: CutStep{N: w.steps[w.stepsDone].n, Stuck: w.progress.roundsDone == 0}}
	if !slow.cut.Stuck {
		slow.cut.Message = micros(w.progress.roundTime()) / float64(w.w.perRound(slow.cut.N))
	}
	return w.out.Bytes()[:w.keptLen], slow
}
