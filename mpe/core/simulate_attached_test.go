package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/attach"
	"github.com/zrlmpi/zrlmpid/mpe"
	client "github.com/zrlmpi/zrlmpid/mpe/attach"
	attachwire "github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/mpe/core"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
)

// daemons are the ranks of a cluster that programs attach to, each with a separate daemon.
type daemons struct {
	*core.Simulated
	devices []mpe.Device
	servers []*attach.Server
}

// daemonRank is the only rank of a daemon.
type daemonRank struct{ simulatedRank }

// Hosts implements attach.Ranks.
func (r daemonRank) Hosts() []int { return []int{r.Rank()} }

// Device implements attach.Ranks.
func (r daemonRank) Device(int) (mpe.Device, error) { return r.simulatedRank, nil }

func newDaemons(s *core.Simulated, o attach.Options) *daemons {
	d := &daemons{Simulated: s, devices: devices(s)}
	for _, device := range d.devices {
		rank := device.(simulatedRank)
		rank.Served = true
		d.servers = append(d.servers, attach.NewServer(daemonRank{rank}, o))
	}
	return d
}

func (d *daemons) device(rank int) simulatedRank {
	return d.devices[rank].(simulatedRank)
}

// attached is a rank with an attached program.
type attached struct {
	*client.Client
	rank   simulatedRank
	stream *core.SimulatedStream
}

// attach attaches a program to a rank.
func (d *daemons) attach(rank int) (*attached, error) {
	program, daemon := d.Streams()
	d.Serve(func() { d.servers[rank].ServeStream(context.Background(), daemon, attachwire.Credentials{}) })
	c, err := client.DialStream(program, rank)
	return &attached{c, d.device(rank), program}, err
}

// Run and WithTimeout call the same methods of the rank.
func (a *attached) Run(programs ...func()) error { return a.rank.Run(programs...) }

func (a *attached) WithTimeout(ctx context.Context, after time.Duration) (context.Context, context.CancelFunc) {
	return a.rank.WithTimeout(ctx, after)
}

// Start implements mpe.Device.
func (a *attached) Start(op mpe.Operation) (mpe.Op, error) { return a.polled(a.Client.Start(op)) }

// StartCollective implements mpe.Device.
func (a *attached) StartCollective(c *collective.Operation) (mpe.Op, error) {
	return a.polled(a.Client.StartCollective(c))
}

// polled returns an operation that a program may poll: time passes with each poll.
func (a *attached) polled(op mpe.Op, err error) (mpe.Op, error) {
	if err != nil {
		return nil, err
	}
	return polled{op, a.rank}, nil
}

type polled struct {
	mpe.Op
	rank simulatedRank
}

// Test implements mpe.Op.
func (o polled) Test() (mpe.Status, bool, error) {
	st, ended, err := o.Op.Test()
	if !ended {
		o.rank.Yield()
		st, ended, err = o.Op.Test()
	}
	return st, ended, err
}

// TestSimulationOfAttached checks that the tests of package mpi pass on ranks of daemons, and that an ended program
// leaves nothing behind in its daemon.
func TestSimulationOfAttached(t *testing.T) { eachSeed(t, 4, softwareKinds, simulateAttached) }

// simulateAttached runs the test of a seed on ranks, some of which belong to attached programs.
func simulateAttached(t *testing.T, k *core.SimulatedKind, seed uint64) (s *core.Simulated) {
	wire, err := devices(core.NewSimulated(t, k, seed, 2))[0].Peer(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	var d *daemons
	name := mpitest.RunOne(t, func(t *testing.T, ranks int) []mpe.Device {
		s = core.NewSimulated(t, k, seed, ranks)
		d = newDaemons(s, attach.Options{})
		devices := slices.Clone(d.devices)
		for rank := range devices {
			if rng.IntN(4) == 0 {
				d.device(rank).Served = false // a program with a private engine
				continue
			}
			a, err := d.attach(rank)
			if err != nil {
				t.Fatal(err)
			}
			devices[rank] = a
		}
		return devices
	}, seed, wire)
	d.check(t, time.Minute)
	if t.Failed() {
		t.Logf("test %q", name)
	}
	return s
}

// check checks that nothing is left of any program. The last program ended the given time ago.
func (d *daemons) check(t *testing.T, ago time.Duration) {
	d.Pass(ago)
	if n := d.Goroutines(); n > 0 {
		t.Errorf("%d goroutines of daemons are left", n)
	}
	for rank, server := range d.servers {
		if programs := server.AttachedPrograms(); len(programs) > 0 {
			t.Errorf("rank %d: %+v is still attached", rank, programs)
		}
	}
}

// TestSimulationOfKilled kills programs at random times, and checks that later programs have correct results,
// and that each daemon regains its memory. Programs that begin while packets of earlier ones may be in
// transit may fail, but must not have wrong results.
func TestSimulationOfKilled(t *testing.T) { eachSeed(t, 4, extendedKinds, simulateKilled) }

// attachedMemory is the memory limit of a daemon in TestSimulationOfKilled.
const attachedMemory = 256 << 10

func simulateKilled(t *testing.T, k *core.SimulatedKind, seed uint64) *core.Simulated {
	rng := rand.New(rand.NewPCG(seed, 4))
	s := core.NewSimulated(t, k, seed, 2+rng.IntN(3))
	d := newDaemons(s, attach.Options{Memory: attachedMemory})
	pause := []time.Duration{20 * time.Millisecond, time.Minute}[rng.IntN(2)]
	for round := range 3 {
		last := round == 2
		strict := last && pause == time.Minute
		var programs []func()
		for rank := range s.Size() {
			programs = append(programs, func() { d.program(t, rank, round, last, strict, rng) })
		}
		if err := s.Run(programs...); err != nil {
			t.Errorf("round %d: %v", round, err)
		}
		d.check(t, pause)
		for rank := range d.devices {
			if n := d.device(rank).Unexpected(1); strict && n > 0 {
				t.Errorf("rank %d: %d messages of calls in world are left", rank, n)
			}
		}
		if t.Failed() {
			t.Logf("%d ranks, round %d", s.Size(), round)
			break
		}
	}
	return s
}

// program attaches to a rank and exchanges messages. Unless it is the last program, it may be killed, or be
// affected when another program is killed. If strict is set, it must not fail.
func (d *daemons) program(t *testing.T, rank, round int, last, strict bool, rng *rand.Rand) {
	a, err := d.attach(rank)
	if err != nil {
		t.Errorf("round %d, rank %d: %v", round, rank, err)
		return
	}
	if !last && rng.IntN(2) == 0 {
		d.KillAfter(time.Duration(rng.IntN([]int{300, 3000, 20_000}[rng.IntN(3)]))*time.Microsecond, a.stream.HangUp)
	}
	ctx, stop := a.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	whole := a.Client.Limits().Bytes
	op, err := a.Start(mpe.Operation{Kind: mpe.OpRecv, Peer: rank, Tag: 1 << 20, Buf: make([]byte, whole)})
	if err == nil {
		op.Cancel()
		_, err = op.Await(ctx)
	}
	if !errors.Is(err, mpe.ErrCancelled) {
		t.Errorf("round %d, rank %d: a receive of %d bytes, all that there are: %v", round, rank, whole, err)
	}
	if err := a.exchange(ctx, round); err != nil && (strict || errors.Is(err, errWrong)) {
		t.Errorf("round %d, rank %d: %v", round, rank, err)
	}
	if err := a.Client.Close(t.Context()); err != nil {
		t.Errorf("round %d, rank %d: %v", round, rank, err)
	}
}

// neighbours exchanges three messages, of n times word, with the next ranks, all at once.
func neighbours(ctx context.Context, c *mpi.Comm, tag int, word int32, n int) error {
	right, left := (c.Rank()+1)%c.Size(), (c.Rank()+c.Size()-1)%c.Size()
	sent := slices.Repeat([]int32{word}, n)
	var requests []mpi.Request
	var received [][]int32
	for range 3 {
		got := make([]int32, n)
		received = append(received, got)
		in, err := mpi.Irecv(c, got, left, tag)
		if err != nil {
			return err
		}
		out, err := mpi.Isend(c, sent, right, tag)
		if err != nil {
			return err
		}
		requests = append(requests, in, out)
	}
	if err := mpi.Waitall(ctx, requests, nil); err != nil {
		return fmt.Errorf("with the neighbours: %w", err)
	}
	for _, got := range received {
		if !slices.Equal(sent, got) {
			return fmt.Errorf("%w: other words were received", errWrong)
		}
	}
	return nil
}

// errWrong means that a call succeeded with a wrong result.
var errWrong = errors.New("wrong result")

// sumByProgram is mpi.Sum as a function of the program.
var sumByProgram = mpi.OpOf(func(in, inout []int32) {
	for i, v := range in {
		inout[i] += v
	}
}, true)

// exchange makes calls and sends messages.
func (a *attached) exchange(ctx context.Context, round int) error {
	world, err := mpi.New(a)
	if err != nil {
		return err
	}
	n := int32(world.Size())
	comms := []*mpi.Comm{world}
	for step := range int32(8) {
		c := comms[int(step)%len(comms)]
		mine := slices.Repeat([]int32{step + int32(round)}, 1+3000*int(step%2))
		sum, sumOf := make([]int32, len(mine)), mpi.Sum
		if step%4 > 1 {
			sumOf = sumByProgram
		}
		if err := mpi.Allreduce(ctx, c, mine, sum, sumOf); err != nil {
			return fmt.Errorf("step %d: Allreduce: %w", step, err)
		}
		if want := n * (step + int32(round)); slices.Min(sum) != want || slices.Max(sum) != want {
			return fmt.Errorf("step %d: %w: the sums are %d to %d, not %d", step, errWrong, slices.Min(sum),
				slices.Max(sum), want)
		}
		if err := neighbours(ctx, c, round, 100*int32(round)+step, 1+5000*int(step%2)); err != nil {
			return fmt.Errorf("step %d: %w", step, err)
		}
		if step == 2 {
			key := round * world.Rank() % world.Size() // in other orders
			c, err := world.Split(ctx, round, key)
			if err != nil {
				return fmt.Errorf("Split: %w", err)
			}
			if c.Size() != world.Size() {
				return fmt.Errorf("%w: Split has %d ranks", errWrong, c.Size())
			}
			comms = append(comms, c)
		}
	}
	return nil
}
