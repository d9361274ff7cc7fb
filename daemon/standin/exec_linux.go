package standin

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// execKernel runs a user's program, which makes calls through the MPE interface. The program completes its work by
// exiting with status 0. After any other exit, execKernel logs it and restarts the program after a pause.
type execKernel struct {
	base
	command []string
	grace   time.Duration
	state   programState
}

// exitGrace is the time limit for a program to exit after its streams have been closed, and again after SIGTERM.
const exitGrace = 2 * time.Second

func newExec(b base, command []string) (Kernel, error) {
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", b.name, err)
	}
	k := &execKernel{base: b, command: command, grace: exitGrace}
	k.state.name, k.state.log = "program "+command[0], b.log
	return k, nil
}

// Stats implements Kernel.
func (k *execKernel) Stats() state.Kernel {
	s := k.base.Stats()
	s.Problem, s.Failed = k.state.describeProblem(), k.state.hasFailed()
	return s
}

// Run implements Kernel.
func (k *execKernel) Run(ctx context.Context, rank Rank) error {
	log := k.rankLog(rank)
	k.state.log = log
	buf, free := allocBuffer(interfaceBufLen(uint32(k.opts.Words)))
	defer free()
	env := rankEnv(rank)
	return k.loop(ctx, log, func() (bool, error) {
		cmd := newCommand(k.command, env)
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return false, fmt.Errorf("cannot start %s: %w", k.command[0], err)
		}
		p, err := startProgram(cmd, stdin, k.grace, log)
		if err != nil {
			return false, err
		}
		k.counters.starts.Add(1)
		m := &mpeInterface{
			rank: rank, in: &countingReader{p.stdout, &k.state}, out: stdin,
			buf: buf, words: uint32(k.opts.Words), log: log, counters: k.counters, state: &k.state,
		}
		err = p.run(ctx, m.serve)
		k.state.noteExit()
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		if err != nil {
			k.state.noteFailure(err)
			k.onFailure(err)
		}
		return true, err
	})
}

// rankEnv returns the environment variables that give a program its rank and the number of ranks.
func rankEnv(r Rank) []string {
	return []string{"ZRLMPI_RANK=" + strconv.Itoa(r.Rank()), "ZRLMPI_SIZE=" + strconv.Itoa(r.Size())}
}

// run serves the program's calls until the program exits or makes a malformed call, or ctx is done. It returns once all
// processes in the program's group have exited. The error is nil if the program exited with status 0 between two calls.
func (p *program) run(ctx context.Context, serve func(context.Context) error) error {
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var broken error
	served := make(chan struct{})
	p.tasks.Go(func() {
		defer close(served)
		broken = serve(calls)
	})
	wait := false
	select {
	case <-served:
		// The program may be about to exit, and its exit status may say more than the error.
		wait = !errors.Is(broken, ErrMalformedCall) && !errors.Is(broken, mpe.ErrClosed)
	case <-p.exited:
		if p.serveToEnd {
			select {
			case <-served:
			case <-ctx.Done():
			}
		}
	case <-ctx.Done():
	}
	cancel(errExited)
	p.stop(wait)
	switch {
	case broken == nil:
		return p.exitErr
	case p.exitErr == nil:
		return broken
	}
	return fmt.Errorf("%w (%w)", broken, p.exitErr)
}

// stop ends the program and waits for its tasks. If the argument wait is true, stop first gives the program the grace
// period to exit voluntarily.
func (p *program) stop(wait bool) {
	p.input.Close()
	if !wait || !p.waitExit() {
		p.signal(term)
		if !p.waitExit() {
			p.log.Warn("program ignores SIGTERM, sending SIGKILL", zap.Duration("after", p.grace))
			p.signal(kill)
			<-p.exited
		}
	}
	// The output closes when the program exits, unless a process outside its group has inherited the descriptor.
	cut := time.AfterFunc(p.grace, p.closeOutputs)
	p.tasks.Wait()
	cut.Stop()
	p.closeOutputs()
}

// waitExit waits at most the grace period for the program to exit, and reports whether it did.
func (p *program) waitExit() bool {
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}
