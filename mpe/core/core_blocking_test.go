package core

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/ctxerr"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// Programs that block, on the ranks of a world. One of them runs at a time, and the seed chooses the next one
// if several can run. Package mpi and the kernels run like this on their Device.

// blocking is a program of a rank, or another goroutine. It runs after it has received a value from resume, until
// it sends a value to suspended. Closing resume kills it.
type blocking struct {
	run               func()
	process           *process
	resume, suspended chan struct{}
	// ready reports whether the program can continue. It continues at the time until in any case.
	ready                 func() bool
	until                 handshake.Instant
	running, over, killed bool
}

// process is the group of goroutines that a program starts, directly or indirectly.
type process struct{ killed bool }

// spawn adds a goroutine to process p, or to no process if p is nil.
func (w *world) spawn(p *process, run func()) *blocking {
	b := &blocking{
		run: run, process: p, ready: func() bool { return true }, until: Never,
		resume: make(chan struct{}), suspended: make(chan struct{}),
	}
	w.programs = append(w.programs, b)
	return b
}

// runnable reports whether the program can continue.
func (b *blocking) runnable(now handshake.Instant) bool { return now >= b.until || b.ready() }

// proceed runs the program until it waits or ends.
func (b *blocking) proceed(w *world) {
	before := w.current
	w.current, b.running = b, true
	b.ready, b.until = func() bool { return false }, Never
	if run := b.run; run != nil {
		b.run = nil
		go func() {
			defer func() {
				b.over = true
				b.suspended <- struct{}{}
			}()
			run()
		}()
	} else {
		b.resume <- struct{}{}
	}
	<-b.suspended
	w.current, b.running = before, false
	w.forgetEnded()
}

// kill ends programs. A running program ends when it next waits.
func (w *world) kill(which func(b *blocking) bool) {
	for _, b := range slices.Clone(w.programs) {
		if b.over || b.killed || !which(b) {
			continue
		}
		b.killed = true
		switch {
		case b.run != nil: // it has not begun
			b.over = true
		case !b.running:
			before := w.current
			w.current = b // during its deferred calls
			close(b.resume)
			<-b.suspended
			w.current = before
		}
	}
	w.forgetEnded()
}

// forgetEnded removes ended programs.
func (w *world) forgetEnded() {
	w.programs = slices.DeleteFunc(w.programs, func(b *blocking) bool { return b.over })
}

// suspend waits until ready reports true, or until a time. If the caller is not a program, suspend runs the
// simulation while it waits, and reports false if there are no more events.
func (w *world) suspend(until handshake.Instant, ready func() bool) bool {
	if b := w.current; b != nil {
		if b.killed { // unwind, and run deferred calls
			runtime.Goexit()
		}
		b.ready, b.until = ready, until
		b.suspended <- struct{}{}
		if _, ok := <-b.resume; !ok {
			runtime.Goexit()
		}
		return true
	}
	for !ready() && w.now < until {
		if !w.step() {
			return false
		}
	}
	return true
}

// Simulated is a cluster in simulated time, for programs that block.
type Simulated struct {
	w *world
	// Messages is the number of sends and collective calls.
	Messages int
	log      []sent // at least the last maxLog
}

// sent is a datagram that the network has processed.
type sent struct {
	at       handshake.Instant
	what     string
	from, to int
	bytes    int
	header   protocol.Header // of profile cloudfpga, or 0
}

// maxLog is the number of datagrams that Log prints.
const maxLog = 200

// SimulatedKind is a kind of Simulated. FPGA means that all ranks except 0 are stand-ins for FPGAs. Tree means that
// they make the calls that upstream's compiler generates with com_opt 1.
type SimulatedKind struct {
	Name       string
	FPGA, Tree bool
	net        faults
	peer       func(local, remote int) Peer
}

// SimulatedKinds are the clusters that NewSimulated can create.
var SimulatedKinds = []SimulatedKind{
	{Name: "extended", peer: extendedPeer},
	{Name: "extended, faults", peer: extendedPeer,
		net: faults{loss: 0.02, duplicate: 0.02, corrupt: 0.01, late: 0.02, stall: 0.01}},
	{Name: "extended, streams", peer: extendedPeer, net: faults{stream: true, reset: 0.002, stall: 0.01}},
	{Name: "cloudfpga", peer: limitedPeer},
	{Name: "cloudfpga, losses", peer: limitedPeer, net: faults{loss: 0.01, most: 3}}, // a fourth may end a message
	{Name: "cloudfpga, streams", peer: limitedPeer, net: faults{stream: true, stall: 0.01, slow: 0.2}},
	{Name: "fpga", FPGA: true, peer: hostAndFPGAs},
	{Name: "fpga, streams", FPGA: true, peer: hostAndFPGAs, net: faults{stream: true, stall: 0.01, slow: 0.2}},
	{Name: "fpga, tree", FPGA: true, Tree: true, peer: hostAndFPGAs},
	{Name: "fpga, tree with streams", FPGA: true, Tree: true, peer: hostAndFPGAs,
		net: faults{stream: true, stall: 0.01, slow: 0.2}},
}

// hostAndFPGAs configures rank 0 as a host of stand-ins.
func hostAndFPGAs(local, remote int) Peer { return hostAndFPGA(min(local, 1), min(remote, 1)) }

// limitedPeer is the configuration between rank 0 and another rank with the cloudfpga profile, in both directions.
func limitedPeer(local, remote int) Peer {
	if min(local, remote) == 0 {
		return software(local, remote)
	}
	return extendedPeer(local, remote)
}

// NewSimulated creates a cluster.
func NewSimulated(t *testing.T, k *SimulatedKind, seed uint64, n int) *Simulated {
	s := &Simulated{w: newCores(t, seed, n, k.net, k.peer)}
	for _, e := range s.w.cores {
		if k.Tree {
			e.calls = collective.New(callEngine{e}, n, collective.Config{Tree: true, FPGAs: members(n)[1:]})
		}
	}
	s.w.trace = func(what string, d datagram) {
		if len(s.log) == 2*maxLog {
			s.log = append(s.log[:0], s.log[maxLog:]...)
		}
		h, defect := protocol.CloudFPGA.Parse(d.bytes)
		if !defect.OK() {
			h = protocol.Header{}
		}
		s.log = append(s.log, sent{s.w.now, what, d.from, d.to, len(d.bytes), h})
	}
	return s
}

// Log prints the most recent datagrams of the network.
func (s *Simulated) Log(t *testing.T) {
	for _, d := range s.log[max(0, len(s.log)-maxLog):] {
		if d.header.Type != 0 {
			t.Logf("%12v %s %v, %d bytes", d.at, d.what, d.header, d.bytes)
			continue
		}
		t.Logf("%12v %s %d→%d: %d bytes", d.at, d.what, d.from, d.to, d.bytes)
	}
}

// Transcript returns the hash of all datagrams sent, with their times.
func (s *Simulated) Transcript() []byte { return s.w.transcript.Sum(nil) }

// Wedges returns the number of packets sent that would wedge an FPGA.
func (s *Simulated) Wedges() (n uint64) {
	for _, e := range s.w.cores {
		for p := range e.peers.created {
			if p != nil {
				n += p.events[state.EventWouldWedge]
			}
		}
	}
	return n
}

// Devices returns the ranks.
func (s *Simulated) Devices() []*SimulatedDevice {
	devices := make([]*SimulatedDevice, len(s.w.cores))
	for rank := range devices {
		devices[rank] = &SimulatedDevice{s: s, w: s.w, Core: s.w.cores[rank]}
	}
	return devices
}

// SimulatedDevice is a rank of a Simulated. A program may use it while Run runs it; other goroutines may use
// it while Run does not run.
type SimulatedDevice struct {
	*Core
	// Served means that an attach.Server uses the device. It examines operations with a lock, and does not
	// poll for their completion.
	Served  bool
	s       *Simulated
	w       *world
	watched []*SimulatedOp
}

// Run runs programs until all of them are done, or there are no more events.
func (d *SimulatedDevice) Run(programs ...func()) error { return d.s.Run(programs...) }

// Run is as SimulatedDevice.Run.
func (s *Simulated) Run(programs ...func()) error {
	w := s.w
	var run []*blocking
	for _, program := range programs {
		run = append(run, w.spawn(new(process), program))
	}
	defer w.kill(func(b *blocking) bool { return slices.Contains(run, b) })
	for slices.ContainsFunc(run, func(b *blocking) bool { return !b.over }) {
		if !w.step() {
			return fmt.Errorf("programs wait, and nothing happens any more: %s", s.waits())
		}
		if w.now > time.Hour {
			return fmt.Errorf("an hour has passed: %s", s.waits())
		}
	}
	return nil
}

// WithTimeout is context.WithTimeout in simulated time.
func (d *SimulatedDevice) WithTimeout(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	d.s.after(after, func() { cancel(context.DeadlineExceeded) })
	return ctx, func() { cancel(nil) }
}

// after schedules a call of do after the given time, behind all arrivals that come earlier.
func (s *Simulated) after(d time.Duration, do func()) {
	s.w.deliver(datagram{at: s.w.now + d, do: do})
}

// waits describes the waits of the ranks.
func (s *Simulated) waits() string {
	var texts []string
	for _, e := range s.w.cores {
		for _, w := range e.Waits(0) {
			texts = append(texts, w.Text())
		}
	}
	return strings.Join(texts, "; ")
}

// wait waits until ready reports true, or for ctx.
func (d *SimulatedDevice) wait(ctx context.Context, ready func() bool) error {
	if d.pending.coalesced {
		d.event(func() { d.FlushCoalesced() })
	}
	return d.s.wait(ctx, ready)
}

// wait waits until ready reports true, or for ctx. The deadline of ctx is only for programs that hang.
func (s *Simulated) wait(ctx context.Context, ready func() bool) error {
	until := Never
	if at, ok := ctx.Deadline(); ok {
		until = s.w.now + max(0, time.Until(at)).Round(time.Second/100)
	}
	for !ready() {
		if err := ctxerr.Cause(ctx); err != nil {
			return err
		}
		if s.w.now >= until {
			return context.DeadlineExceeded
		}
		if !s.w.suspend(until, func() bool { return ready() || ctx.Err() != nil }) {
			return errors.New("nothing happens any more")
		}
	}
	return nil
}

// yield suspends a caller that polls for a short time.
func (d *SimulatedDevice) yield(ready func() bool) {
	if d.pending.coalesced {
		d.event(func() { d.FlushCoalesced() })
	}
	d.w.suspend(d.w.now+time.Duration(1+d.w.rng.IntN(50))*time.Microsecond, ready)
}

// event runs an event of the rank's core.
func (d *SimulatedDevice) event(do func()) { d.w.event(d.rank, func(*Core) { do() }) }

// Peer is as in mpe.Device.
func (d *SimulatedDevice) Peer(rank int) (PeerInfo, error) { return d.PeerInfo(rank) }

// Start implements mpe.Device.
func (d *SimulatedDevice) Start(op Operation) (*SimulatedOp, error) {
	if err := d.Check(&op); err != nil {
		return nil, err
	}
	if op.Kind != OpRecv {
		d.s.Messages++
	}
	r := new(Request)
	d.Init(r, &op)
	var err error
	d.event(func() { err = d.startRequest(r, op.Blocking) })
	if err != nil {
		return nil, err
	}
	return &SimulatedOp{d: d, Request: r}, nil
}

// StartCollective is as in mpe.Device.
func (d *SimulatedDevice) StartCollective(c *collective.Operation) (*SimulatedOp, error) {
	r := new(Request)
	err := d.Prepare(r, new(collective.Execution), c)
	if err != nil {
		return nil, err
	}
	d.s.Messages++
	d.event(func() { err = d.StartCall(r) })
	if err != nil {
		return nil, err
	}
	return &SimulatedOp{d: d, Request: r}, nil
}

// Probe is as in mpe.Device.
func (d *SimulatedDevice) Probe(ctx context.Context, m Match, wait bool) (Status, bool, error) {
	if err := d.Check(&Operation{Kind: OpRecv, Peer: m.Source, Tag: m.Tag, Comm: m.Comm}); err != nil {
		return Status{}, false, err
	}
	found := make(chan struct{}, 1)
	mine := &Probe{Match: m, Wake: func() { notify(found) }}
	if wait {
		d.Probes.Add(mine)
		defer d.Probes.Remove(mine)
	}
	for polled := false; ; polled = true {
		if d.state != running {
			return Status{}, false, fmt.Errorf("rank %d: %w", d.rank, ErrClosed)
		}
		st, ok := d.Probes.Find(m)
		switch {
		case ok:
			return st, true, nil
		case mine.Err != nil:
			return Status{}, false, mine.Err
		case wait:
			if err := d.Await(ctx, found); err != nil {
				return Status{}, false, fmt.Errorf("rank %d waits for a message to probe: %w", d.rank, err)
			}
		case polled:
			return Status{}, false, nil
		default:
			d.yield(func() bool { return false })
		}
	}
}

// Yield suspends a caller that polls for a short time.
func (d *SimulatedDevice) Yield() { d.yield(func() bool { return false }) }

// ProgramEnded is as Engine.ProgramEnded.
func (d *SimulatedDevice) ProgramEnded(clean bool) { d.event(func() { d.Core.ProgramEnded(clean) }) }

// Await is as in mpe.Device.
func (d *SimulatedDevice) Await(ctx context.Context, c <-chan struct{}) error {
	ready := func() bool {
		d.watched = slices.DeleteFunc(d.watched, func(o *SimulatedOp) bool {
			if o.Done {
				notify(o.notify)
				if o.then != nil {
					o.then()
				}
			}
			return o.Done || o.notify == nil && o.then == nil
		})
		return len(c) > 0
	}
	if err := d.wait(ctx, ready); err != nil {
		return err
	}
	<-c
	return nil
}

// Close is as in mpe.Device.
func (d *SimulatedDevice) Close(ctx context.Context) error {
	if d.state == closed {
		return nil
	}
	d.event(d.Drain)
	quiet := func() bool { return !d.busy() }
	within, cancel := d.WithTimeout(ctx, AbortTime)
	defer cancel()
	if d.wait(within, quiet) != nil {
		d.event(d.DropAborts)
	}
	err := d.wait(ctx, quiet)
	d.event(d.Shutdown)
	d.w.ports[d.rank].stopped = Never // no reader and no timer is left
	return err
}

// SimulatedOp is an operation of a SimulatedDevice.
type SimulatedOp struct {
	*Request
	d      *SimulatedDevice
	notify chan<- struct{}
	then   func()
}

func (o *SimulatedOp) ended() bool { return o.Done }

// Await is as in mpe.Op.
func (o *SimulatedOp) Await(ctx context.Context) (*Status, error) {
	if err := o.d.wait(ctx, o.ended); err != nil {
		_, err = o.Detach(err, nil)
		return &o.Status, err
	}
	return &o.Status, o.Err
}

// Result returns nil, because completion takes simulated time.
func (o *SimulatedOp) Result() (*Status, error) { return nil, nil }

// LibraryData returns nil.
func (o *SimulatedOp) LibraryData() *any { return nil }

// Detach is as Request.Detach.
func (o *SimulatedOp) Detach(cause error, keep KeepFunc) (Status, error) {
	return o.detach(cause, keep, false)
}

// Abandon is as Request.Abandon.
func (o *SimulatedOp) Abandon(cause error, keep KeepFunc) (Status, error) {
	return o.detach(cause, keep, true)
}

func (o *SimulatedOp) detach(cause error, keep KeepFunc, gone bool) (Status, error) {
	for o.kind == opCollective && !o.Done && o.Call.CancelComputing(cause) {
		o.d.Yield() // the user's function is using the buffers
	}
	o.d.event(func() { o.d.AbortWait(o.Request, cause, keep, gone) })
	return o.Status, o.Err
}

// Test is as in mpe.Op.
func (o *SimulatedOp) Test() (Status, bool, error) {
	if !o.Done && !o.d.Served {
		o.d.yield(o.ended)
	}
	if !o.Done {
		return Status{}, false, nil
	}
	return o.Status, true, o.Err
}

// Cancel is as in mpe.Op.
func (o *SimulatedOp) Cancel() { o.d.event(func() { o.d.CancelRequest(o.Request) }) }

// Notify is as in mpe.Op.
func (o *SimulatedOp) Notify(c chan<- struct{}) {
	if o.notify = c; c != nil {
		o.watch()
	}
}

// OnEnd is as mpe.Request.OnEnd.
func (o *SimulatedOp) OnEnd(then func(), _ func() bool) {
	if o.Done {
		then()
		return
	}
	o.then = then
	o.watch()
}

func (o *SimulatedOp) watch() {
	if !slices.Contains(o.d.watched, o) {
		o.d.watched = append(o.d.watched, o)
	}
}

// Free is as in mpe.Op. The garbage collector frees the Request, because tests may still read it.
func (o *SimulatedOp) Free() { o.then = nil }

// notify sends a value to c, which may be nil, without blocking.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Seeds returns the first seed of the simulation, and the number of seeds.
func Seeds() (first, n uint64) {
	if testing.Short() {
		return *firstSeed, uint64(min(*seeds, 5))
	}
	return *firstSeed, uint64(*seeds)
}

// Size returns the number of ranks.
func (s *Simulated) Size() int { return len(s.w.cores) }
