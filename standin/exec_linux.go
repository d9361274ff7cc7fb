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
)

// execKernel runs a program of the user's that makes its calls over the MPE
// interface. A program that exits with status 0 has done its work; any other end
// is logged, and it is started again after a pause.
type execKernel struct {
	base
	command []string
	grace   time.Duration
}

// exitGrace is how long a program may take to exit after its streams were
// closed, and again after SIGTERM.
const exitGrace = 2 * time.Second

func newExec(b base, command []string) (Kernel, error) {
	if len(command) == 0 {
		return nil, fmt.Errorf("kernel %q names no program: write %s/path/prog, with arguments behind it", b.spec, execPrefix)
	}
	if _, err := exec.LookPath(command[0]); err != nil {
		return nil, fmt.Errorf("kernel %q: %w", b.spec, err)
	}
	return &execKernel{base: b, command: command, grace: exitGrace}, nil
}

// Run implements Kernel.
func (k *execKernel) Run(ctx context.Context, r Rank) error {
	rank, log := k.begin(r)
	buf, free := room(interfaceRoom(k.opts.Words))
	defer free()
	env := []string{"ZRLMPI_RANK=" + strconv.Itoa(r.Rank()), "ZRLMPI_SIZE=" + strconv.Itoa(r.Size())}
	return k.loop(ctx, log, func() (bool, error) {
		p, err := startProgram(k.command, env, k.grace, log)
		if err != nil {
			return false, err
		}
		k.counters.starts.Add(1)
		m := &mpeInterface{
			rank: rank, in: p.stdout, out: p.stdin,
			buf: buf, words: k.opts.Words, log: log, fails: k.counters,
		}
		err = p.run(ctx, m.serve)
		if ctx.Err() != nil {
			return false, context.Cause(ctx)
		}
		return true, err
	})
}

// run lets the program make its calls until it exits, breaks the rules or ctx
// ends. The program is gone when run returns, and so is everything that it
// started in its process group. The error is nil if the program exited with
// status 0, between two calls.
func (p *program) run(ctx context.Context, serve func(context.Context) error) error {
	calls, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var broken error
	served := make(chan struct{})
	p.tasks.Go(func() {
		defer close(served)
		broken = serve(calls)
	})
	patient := false
	select {
	case <-served:
		// It may be about to exit, and then its own status tells more.
		patient = !errors.Is(broken, ErrNonsense) && !errors.Is(broken, mpe.ErrClosed)
	case <-p.exited:
	case <-ctx.Done():
	}
	cancel(errExited)
	p.stop(patient)
	switch {
	case broken == nil:
		return p.exit
	case p.exit == nil:
		return broken
	}
	return fmt.Errorf("%w (%w)", broken, p.exit)
}

// stop makes sure that the program has exited, and waits for all that was
// started with it. A patient stop first waits for it to exit by itself.
func (p *program) stop(patient bool) {
	p.stdin.Close()
	if !patient || !p.exitsWithin() {
		p.signal(term)
		if !p.exitsWithin() {
			p.log.Warn("program does not end on SIGTERM, so it gets SIGKILL", zap.Duration("after", p.grace))
			p.signal(kill)
			<-p.exited
		}
	}
	// Its output ends with it, unless a process that left its group holds
	// on to that.
	cut := time.AfterFunc(p.grace, p.closeOutputs)
	p.tasks.Wait()
	cut.Stop()
	p.closeOutputs()
}

// exitsWithin waits for the program to exit, as long as the grace lasts.
func (p *program) exitsWithin() bool {
	t := time.NewTimer(p.grace)
	defer t.Stop()
	select {
	case <-p.exited:
		return true
	case <-t.C:
		return false
	}
}
