package standin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"go.uber.org/zap"

	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
)

const (
	// stepCycles is the maximum number of cycles in a step, and budgetMicroseconds the maximum duration of a step. That
	// duration is long compared with the two context switches of a step, and short compared with a message, so that the
	// role soon learns that an operation has completed.
	stepCycles         = 1 << 16
	budgetMicroseconds = 200
	// stallCycles is the number of cycles for which the role may delay a message before the kernel logs the delay: 0.64
	// ms at the deployed clock rate.
	stallCycles = 100_000
	// paceSleep is the maximum duration of a pause in a paced simulation.
	paceSleep = 10 * time.Millisecond
)

// enginePort is zrlmpid's side of a role's interface at one of the boundaries.
type enginePort interface {
	PrepareStep(s *cosim.Step, lines uint32) error
	Advance(s *cosim.Result) error
	Cycle() uint64
	Wait() cosim.Wait
	IsFaulty() bool
	Overdue(cycles uint64) (since uint64, ok bool)
	IsIdle() bool
	TakeFindings() []*cosim.FaultError
}

// simulator is one run of a simulator.
type simulator struct {
	k    *rtlKernel
	conn net.Conn
	port enginePort // under k.mu
	log  *zap.Logger
	rank rankCalls
	// beforeStep and afterStep are called before and after every step.
	beforeStep func(ctx context.Context) error
	afterStep  func()

	in, out   []byte
	step      cosim.Step
	result    cosim.Result
	fifoLines uint32 // cosim.Hello.FIFO
	// boundary is the simulator's boundary.
	boundary    cosim.Boundary
	warnedSince uint64 // first cycle of the most recently logged delay
}

// serve exchanges frames with the simulator until the simulator exits. It returns nil if no call or datagram was in
// progress when the simulator exited.
func (s *simulator) serve(ctx context.Context) error {
	s.in, s.out = make([]byte, cosim.MaxFrame), make([]byte, 0, cosim.MaxFrame)
	hello, err := s.exchangeHello()
	if err != nil {
		return err
	}
	s.fifoLines = hello.FIFO
	started := time.Now()
	for { // until the program exits or ctx is done, which closes the connection
		if err := s.beforeStep(ctx); err != nil {
			return err
		}
		cycles, wait := s.paceStep(time.Since(started))
		if wait > 0 {
			if sleep(ctx, wait) == nil {
				continue
			}
			cycles = 1
		}
		if err := s.exchange(cycles); err != nil {
			if e, ok := errors.AsType[*SimulatorError](err); ok && e.hasExited() && s.port.IsIdle() {
				return nil
			}
			return err
		}
		s.afterStep()
	}
}

// exchangeHello receives Hello and sends Start.
func (s *simulator) exchangeHello() (hello cosim.Hello, err error) {
	body, err := s.read(cosim.TypeHello, s.k.limits.start)
	if err != nil {
		return hello, err
	}
	if hello, err = cosim.ParseHello(body); err != nil {
		return hello, err
	}
	if s.boundary = hello.Boundary; hello.Boundary.Network() != s.k.boundary.Network() {
		return hello, &cosim.BoundaryError{Got: hello.Boundary, Want: s.k.boundary}
	}
	o := &s.k.sim
	s.out = cosim.AppendStart(s.out[:0],
		cosim.Start{Rank: uint32(s.rank.Rank()), Size: uint32(s.rank.Size()), Stall: uint32(o.StallPercent),
			Seed: uint64(o.Seed)})
	return hello, s.write()
}

// paceStep returns the number of cycles that the simulation may run now, or the time to wait if it may not run yet.
func (s *simulator) paceStep(elapsed time.Duration) (cycles uint32, wait time.Duration) {
	rate := s.k.sim.CyclesPerSecond
	if rate == 0 {
		return stepCycles, 0
	}
	due, now := elapsed.Seconds()*float64(rate), float64(s.port.Cycle())
	if due >= now+1 {
		return uint32(min(due-now, stepCycles)), 0
	}
	return 0, min(time.Duration((now+1-due)/float64(rate)*float64(time.Second))+1, paceSleep)
}

// exchange runs the simulator for one step.
func (s *simulator) exchange(cycles uint32) error {
	s.step.Cycles, s.step.Budget = cycles, budgetMicroseconds
	s.k.mu.Lock()
	err := s.port.PrepareStep(&s.step, s.fifoLines)
	s.k.mu.Unlock()
	if err := s.handleFault(err); err != nil {
		return err
	}
	s.out = cosim.AppendStep(s.out[:0], s.boundary, &s.step)
	if err := s.write(); err != nil {
		return err
	}
	body, err := s.read(cosim.TypeResult, s.k.limits.answer)
	if err != nil {
		return err
	}
	if err := cosim.ParseResult(body, s.boundary, &s.result); err != nil {
		return s.withCycle(err)
	}
	s.k.mu.Lock()
	err = s.port.Advance(&s.result)
	s.k.recordCycle()
	found := s.port.TakeFindings()
	s.k.mu.Unlock()
	for _, f := range found {
		s.k.counters.errors.Add(1)
		s.log.Warn("valid of the role follows ready", zap.String("signal", f.Signal), zap.Uint64("cycle", f.Cycle),
			zap.String("problem", f.Problem))
	}
	if err := s.handleFault(err); err != nil {
		return err
	}
	s.warnStall()
	return nil
}

// handleFault logs an error that is a fault of the role and returns nil, because the simulation continues. It adds the
// current cycle to any other error and returns it.
func (s *simulator) handleFault(err error) error {
	faultError, ok := errors.AsType[*cosim.FaultError](err)
	if !ok {
		return s.withCycle(err)
	}
	s.k.counters.errors.Add(1)
	s.log.Warn("role violates the rules of its interface and its rank stops exchanging messages: correct the role "+
		"and restart zrlmpid",
		zap.String("signal", faultError.Signal), zap.Uint64("cycle", faultError.Cycle), zap.String("problem",
			faultError.Problem))
	s.k.onFailure(faultError)
	return nil
}

// withCycle adds the current cycle to an error.
func (s *simulator) withCycle(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("after cycle %d: %w", s.port.Cycle(), err)
}

// warnStall logs that the role is delaying a message.
func (s *simulator) warnStall() {
	since, ok := s.port.Overdue(stallCycles)
	if !ok || since == s.warnedSince {
		return
	}
	s.warnedSince = since
	w := s.port.Wait()
	s.log.Warn("role stalls a message", zap.String("signal", w.Signal), zap.Uint64("since_cycle", w.Since),
		zap.Uint64("cycle", s.port.Cycle()), zap.String("text", w.Text))
}

// write writes the frame in s.out to the simulator.
func (s *simulator) write() error {
	if err := s.conn.SetWriteDeadline(time.Now().Add(s.k.limits.answer)); err != nil {
		return s.asSimulatorError(err, 0)
	}
	_, err := s.conn.Write(s.out)
	return s.asSimulatorError(err, s.k.limits.answer)
}

// read reads a frame within a time limit and returns its body, which is valid until the next call.
func (s *simulator) read(want cosim.Type, within time.Duration) ([]byte, error) {
	if err := s.conn.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, s.asSimulatorError(err, 0)
	}
	if _, err := io.ReadFull(s.conn, s.in[:cosim.HeadLen]); err != nil {
		return nil, s.asSimulatorError(err, within)
	}
	t, n, err := cosim.ParseHead(s.in)
	if err == nil && t != want {
		err = fmt.Errorf("%w: %v in place of %v", cosim.ErrFrame, t, want)
	}
	if err != nil {
		return nil, s.withCycle(err)
	}
	body := s.in[cosim.HeadLen:][:n]
	_, err = io.ReadFull(s.conn, body)
	return body, s.asSimulatorError(err, within)
}

// asSimulatorError converts an error of the connection to the simulator to a *SimulatorError.
func (s *simulator) asSimulatorError(err error, within time.Duration) error {
	if err == nil {
		return nil
	}
	w := s.port.Wait()
	doing := w.Text
	if w.Signal != "" {
		doing = w.Signal + " " + w.Text
	}
	return &SimulatorError{Cycle: s.port.Cycle(), WaitedFor: doing, Err: err, Timeout: within}
}
