package goodput

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/path"
)

// graceTime is the time that a process may take in addition to the time of its flow. killTime is the time that a
// process has to exit after it was stopped.
const (
	graceTime = 20 * time.Second
	killTime  = 5 * time.Second
)

// attempts is the maximum number of attempts at a measurement in a round. Further attempts are made only if the
// emulator was late.
const attempts = 3

// Run runs the measurements, and writes its progress to progress. If a measurement fails, Run does not repeat it, but
// lists it in the report, whose Err then returns an error. Run itself returns an error only if the options are invalid
// (a *UsageError), if nothing can be measured, or if ctx is done.
func Run(ctx context.Context, options Options, progress io.Writer) (*Report, error) {
	if err := options.setDefaults(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "zrlmpid-goodput-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	r := runner{dir: dir, self: self, report: &Report{Machine: bench.DescribeMachine(), Cells: options.selectCells()}}
	for round := range options.Rounds {
		for i := range r.report.Cells {
			cell := &r.report.Cells[i]
			if cell.byteLimit > 0 && round > 0 {
				continue // verifying a transfer once is enough
			}
			fmt.Fprintf(progress, "round %d of %d: %v\n", round+1, options.Rounds, cell)
			for k := range cell.Runs {
				if err := r.measure(ctx, cell, &cell.Runs[k], options.Seed+round); err != nil {
					return nil, err
				}
			}
		}
	}
	return r.report, nil
}

// runner holds the state of a run.
type runner struct {
	dir, self string
	report    *Report
}

// measure makes a measurement. If the emulator was late, for example because the host of a virtual machine took its
// processors away, measure tries again, and keeps the attempt with the least lateness. It returns an error only if no
// further measurement is possible.
func (r *runner) measure(ctx context.Context, cell *Cell, run *Measured, seed int) error {
	var best *Round
	for range attempts {
		p, err := path.Open(cell.config(seed))
		if err != nil {
			return err
		}
		round, err := r.measureOnce(ctx, p, cell, run)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			r.report.Failed = append(r.report.Failed, fmt.Sprintf("%v, %s, seed %d: %v", cell, run.name(), seed, err))
			return nil
		}
		if best == nil || round.Path.Late() < best.Path.Late() {
			best = round
		}
		if cell.byteLimit > 0 || best.Path.Late() <= cell.tolerance() { // a transfer is not timed
			break
		}
	}
	best.Seed = seed
	run.Rounds = append(run.Rounds, *best)
	return nil
}

// measureOnce makes a measurement once and closes the path.
func (r *runner) measureOnce(ctx context.Context, p *path.Path, c *Cell, run *Measured) (*Round, error) {
	flows, err := r.runFlows(ctx, p, c, run)
	use, closed := p.Close()
	if err := errors.Join(err, closed); err != nil {
		return nil, err
	}
	return &Round{Flows: flows, Path: use}, nil
}

// runFlows runs all flows of a measurement at the same time.
func (r *runner) runFlows(ctx context.Context, p *path.Path, cell *Cell, run *Measured) ([]Flow, error) {
	ctx, cancel := context.WithTimeout(ctx, cell.duration+graceTime)
	defer cancel()
	results := make([]Flow, len(run.Flows))
	ends := make(chan error, len(run.Flows))
	for i, side := range run.Flows {
		go func() {
			err := r.runFlow(ctx, p, cell, side, i, &results[i])
			if err != nil {
				cancel() // the other flows would have no counterpart for a comparison
			}
			ends <- err
		}()
	}
	var errs []error
	for range run.Flows {
		if err := <-ends; err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return nil, errs[0] // later errors are consequences of the first
	}
	return results, nil
}

// runFlow runs the two processes of a flow until the receiver has received enough.
func (r *runner) runFlow(ctx context.Context, p *path.Path, cell *Cell, side string, number int, result *Flow) error {
	j := job{
		Side: side, Config: filepath.Join(r.dir, fmt.Sprintf("%s.%d.yaml", side, number)),
		Address: netip.AddrPortFrom(path.Addr(1), uint16(port(number))).String(),
		Skip:    cell.skip, Time: cell.duration, Bytes: cell.byteLimit,
	}
	if err := configure(j.Config, side, number); err != nil {
		return err
	}
	receiver, err := r.startProcess(ctx, p, j, 1)
	if err != nil {
		return err
	}
	sender, err := r.startProcess(ctx, p, j, 0)
	if err != nil {
		return errors.Join(err, receiver.stop())
	}
	printed := json.NewDecoder(receiver.out).Decode(result)
	if printed != nil || cell.byteLimit == 0 {
		sender.stdin.Close()
	}
	sent := sender.wait()
	received := receiver.stop()
	switch {
	case received != nil:
		return received
	case sent != nil:
		return sent
	case printed != nil:
		return fmt.Errorf("%s: the receiver prints no result: %w", side, printed)
	}
	result.CPU = sender.used() + receiver.used()
	return nil
}

// process is one end of a flow.
type process struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   io.Reader
	err   bytes.Buffer
}

// startProcess starts one end of a flow in the namespace at its end of the path.
func (r *runner) startProcess(ctx context.Context, p *path.Path, j job, rank int) (*process, error) {
	j.Rank = rank
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	proc := &process{cmd: exec.CommandContext(ctx, r.self, FlowCommand, string(text))}
	proc.cmd.Stderr, proc.cmd.WaitDelay = &proc.err, killTime
	if proc.stdin, err = proc.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if proc.out, err = proc.cmd.StdoutPipe(); err != nil {
		return nil, err
	}
	p.Do(rank, func() { err = proc.cmd.Start() })
	if err != nil {
		return nil, err
	}
	return proc, nil
}

// stop stops the process and waits for it to exit.
func (p *process) stop() error {
	p.stdin.Close()
	return p.wait()
}

// wait waits for the process to exit. An error includes the process's error output.
func (p *process) wait() error {
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(p.err.String()))
	}
	return nil
}

// used returns the processor time in seconds used by a process that has exited.
func (p *process) used() float64 {
	return (p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()).Seconds()
}
