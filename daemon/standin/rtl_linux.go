package standin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/standin/cosim"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// rtlKernel runs a user's simulator of the FPGA's role. The simulator completes its work by exiting with status 0
// between two calls or datagrams. After any other exit, rtlKernel logs it and restarts the simulator after a pause.
type rtlKernel struct {
	base
	command  []string
	sim      config.Simulation
	boundary cosim.Boundary
	grace    time.Duration
	limits   waitLimits

	mu      sync.Mutex
	port    enginePort // port of the running simulator; nil before the first start
	history history
	tcp     *connections // connections of the running simulator, or nil
}

// waitLimits limits how long to wait for a simulator to start and to answer.
type waitLimits struct{ start, answer time.Duration }

// Time limits for a simulator, before they are multiplied by time_scale. A large design takes tens of seconds to
// elaborate. A step takes about budgetMicroseconds, but covers at least 64 cycles.
const (
	startTimeout  = time.Minute
	answerTimeout = 10 * time.Second
)

// simulatorFD is the number of the file descriptor that a simulator inherits for its connection.
const simulatorFD = 3

func newRTL(b base, spec config.Kernel) (Kernel, error) {
	if _, err := exec.LookPath(spec.Command[0]); err != nil {
		return nil, fmt.Errorf("kernel %q: %w: build the simulator first", b.name, err)
	}
	scale := time.Duration(max(1, spec.Simulation.TimeScale))
	kernel := &rtlKernel{base: b, command: spec.Command, sim: spec.Simulation, grace: exitGrace,
		limits: waitLimits{scale * startTimeout, scale * answerTimeout}}
	if spec.BypassesEngine() {
		kernel.boundary = cosim.BoundaryNetwork
		return &rtlNetKernel{rtlKernel: kernel}, nil
	}
	return kernel, nil
}

// rtlNetKernel is an rtlKernel whose simulation includes the MPE.
type rtlNetKernel struct {
	*rtlKernel
	wire Wire
}

// Connect implements WireKernel.
func (k *rtlNetKernel) Connect(w Wire) { k.wire = w }

// Run implements Kernel.
func (k *rtlNetKernel) Run(ctx context.Context, rank Rank) error {
	ctx, cancel := context.WithCancelCause(ctx)
	in := newInbox(k.wire)
	var reader sync.WaitGroup
	reader.Go(func() { cancel(in.readLoop(ctx)) })
	defer reader.Wait()
	defer k.wire.Close()
	defer cancel(nil)
	log := k.newRunLog(rank)
	return k.loop(ctx, log, func() (bool, error) {
		var ports []uint16
		for _, a := range k.wire.Addresses() {
			ports = append(ports, a.Port())
		}
		network := cosim.NewNetwork(rank.Rank(), ports)
		d := &datagramExchange{k: k.rtlKernel, inbox: in, network: network, log: log}
		return k.simulate(ctx, rank, network, log, d.serve)
	})
}

// Stats implements Kernel.
func (k *rtlKernel) Stats() state.Kernel {
	kernel := k.base.Stats()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.port != nil {
		w := k.port.Wait()
		kernel.Simulation = &state.Simulation{Cycle: k.port.Cycle(), Signal: w.Signal, Since: w.Since, Text: w.Text,
			Fault: k.port.IsFaulty()}
		if n, ok := k.port.(*cosim.Network); ok {
			kernel.Simulation.Datagrams = new(n.Stats())
			if k.tcp != nil {
				kernel.Simulation.TCP = &state.TCP{Chunks: n.TCPStats(), Connections: k.tcp.Stats()}
			}
		}
	}
	return kernel
}

// Cycle implements Simulated.
func (k *rtlKernel) Cycle() (simulation, cycle uint64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.port == nil {
		return 0, 0
	}
	return k.counters.starts.Load(), k.port.Cycle()
}

// CycleAt implements Simulated.
func (k *rtlKernel) CycleAt(t time.Time) (simulation, cycle uint64, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	r, ok := k.history.lastBefore(t.UnixNano())
	return r.simulation, r.cycle, ok
}

// recordCycle adds the port's current cycle to the history. The caller must hold the lock.
func (k *rtlKernel) recordCycle() {
	k.history.add(cycleReport{unixNano: time.Now().UnixNano(), simulation: k.counters.starts.Load(),
		cycle: k.port.Cycle()})
}

// Run implements Kernel.
func (k *rtlKernel) Run(ctx context.Context, rank Rank) error {
	log := k.newRunLog(rank)
	buf, free := allocBuffer(cosim.BufferLen(uint32(k.opts.Words)))
	defer free()
	return k.loop(ctx, log, func() (bool, error) {
		port := cosim.NewPort(rank.Rank(), rank.Size(), uint32(k.opts.Words), buf)
		c := &roleCalls{k: k, rank: rank, port: port, log: log}
		return k.simulate(ctx, rank, port, log, c.serve)
	})
}

// newRunLog returns the kernel's log for a rank. If the timeouts are scaled, newRunLog logs them.
func (k *rtlKernel) newRunLog(r Rank) *zap.Logger {
	log := k.rankLog(r)
	if scale := k.sim.TimeScale; scale > 1 {
		log.Info("timeouts stretched", zap.Int("time_scale", scale), zap.Duration("simulator_start", k.limits.start),
			zap.Duration("simulator_answer", k.limits.answer))
	}
	return log
}

// simulate runs the simulator once, connected to the given port.
func (k *rtlKernel) simulate(ctx context.Context, rank Rank, port enginePort, log *zap.Logger,
	serve func(context.Context, *simulator) error) (done bool, err error) {
	conn, child, err := socketPair()
	if err != nil {
		return false, fmt.Errorf("cannot start %s: %w", k.command[0], err)
	}
	cmd := newCommand(k.command, append(rankEnv(rank), fmt.Sprintf("ZRLMPI_COSIM_FD=%d", simulatorFD)))
	cmd.ExtraFiles = []*os.File{child}
	p, err := startProgram(cmd, conn, k.grace, log)
	child.Close()
	if err != nil {
		return false, err
	}
	p.serveToEnd = true
	p.tasks.Go(func() { logLines(p.stdout, p.log) })
	k.mu.Lock()
	k.counters.starts.Add(1)
	k.port, k.tcp = port, nil
	k.recordCycle()
	k.mu.Unlock()
	s := &simulator{k: k, rank: rank, conn: conn, port: port, log: log}
	err = p.run(ctx, func(ctx context.Context) error { return serve(ctx, s) })
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	if err != nil {
		k.onFailure(err)
	}
	return true, err
}

// socketPair returns a connection, and the file of its other end, which is for a program.
func socketPair() (net.Conn, *os.File, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	own, child := os.NewFile(uintptr(fds[0]), "simulator"), os.NewFile(uintptr(fds[1]), "simulator")
	defer own.Close()
	conn, err := net.FileConn(own)
	if err != nil {
		child.Close()
		return nil, nil, err
	}
	return conn, child, nil
}

// SimulatorError reports that a simulator has exited or does not answer.
type SimulatorError struct {
	// Cycle is the most recent cycle reported by the simulator.
	Cycle uint64
	// WaitedFor describes the event for which the rank was waiting at the time of the error.
	WaitedFor string
	// Err is the error of the connection. It is os.ErrDeadlineExceeded if the simulator did not answer within Timeout.
	Err     error
	Timeout time.Duration
}

func (e *SimulatorError) Error() string {
	at := fmt.Sprintf("after cycle %d, in %s", e.Cycle, e.WaitedFor)
	if !e.hasExited() {
		return fmt.Sprintf("the simulator has not answered for %v %s: find out where it hangs (gdb, waves); if it is "+
			"only slow, raise time_scale, as in rtl:time_scale=10 PROGRAM", e.Timeout, at)
	}
	return fmt.Sprintf("the simulator ended %s: its earlier output is in the log: %v", at, e.Err)
}

// hasExited reports whether the simulator has exited, voluntarily or not.
func (e *SimulatorError) hasExited() bool { return !errors.Is(e.Err, os.ErrDeadlineExceeded) }

func (e *SimulatorError) Unwrap() error { return e.Err }
