package mpe_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/attach"
	"github.com/zrlmpi/zrlmpid/internal/testkit/mpitest"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// daemons are the ranks of a cluster that programs attach to, each with a daemon of its own.
type daemons struct {
	*mpe.Simulated
	devices []mpe.Device
	servers []*attach.Server
}

// Hosts implements attach.Ranks.
func (r daemonRank) Hosts() []int { return []int{r.Rank()} }

// Device implements attach.Ranks.
func (r daemonRank) Device(int) (mpe.Device, error) { return r.SimulatedDevice, nil }

// daemonRank is the one rank of a daemon.
type daemonRank struct{ *mpe.SimulatedDevice }

func newDaemons(s *mpe.Simulated) *daemons {
	d := &daemons{Simulated: s, devices: s.Devices()}
	for _, device := range d.devices {
		rank := device.(*mpe.SimulatedDevice)
		rank.Served = true
		d.servers = append(d.servers, attach.NewServer(daemonRank{rank}, attach.Options{}))
	}
	return d
}

func (d *daemons) device(rank int) *mpe.SimulatedDevice {
	return d.devices[rank].(*mpe.SimulatedDevice)
}

// attached is a rank that a program has attached to.
type attached struct {
	*attach.Client
	rank   *mpe.SimulatedDevice
	stream *mpe.SimulatedStream
}

// attach has a program attach to a rank.
func (d *daemons) attach(rank int) (*attached, error) {
	program, daemon := d.Streams()
	d.Serve(func() { d.servers[rank].ServeStream(context.Background(), daemon, attach.Credentials{}) })
	c, err := attach.DialStream(program, rank)
	return &attached{c, d.device(rank), program}, err
}

// Run and WithTimeout are those of the rank.
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

// polled returns an operation that a program may poll: time passes meanwhile.
func (a *attached) polled(op mpe.Op, err error) (mpe.Op, error) {
	if err != nil {
		return nil, err
	}
	return polled{op, a.rank}, nil
}

type polled struct {
	mpe.Op
	rank *mpe.SimulatedDevice
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

// TestSimulationOfAttached: the tests of package mpi pass on ranks of daemons, and nothing is
// left in a daemon of a program that has ended.
func TestSimulationOfAttached(t *testing.T) { eachSeed(t, false, simulateAttached) }

// simulateAttached runs the test of a seed on ranks of which some are attached to.
func simulateAttached(t *testing.T, k *mpe.SimulatedKind, seed uint64) (s *mpe.Simulated) {
	wire, err := mpe.NewSimulated(t, k, seed, 2).Devices()[0].Peer(1)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 3))
	var d *daemons
	name := mpitest.One(t, func(t *testing.T, ranks int) []mpe.Device {
		s = mpe.NewSimulated(t, k, seed, ranks)
		d = newDaemons(s)
		devices := slices.Clone(d.devices)
		for rank := range devices {
			if rng.IntN(4) == 0 {
				d.device(rank).Served = false // a program with an engine of its own
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
	d.check(t)
	if t.Failed() {
		t.Logf("test %q", name)
	}
	return s
}

// check wants nothing to be left of programs, all of which have ended.
func (d *daemons) check(t *testing.T) {
	if n := d.Goroutines(); n > 0 {
		t.Errorf("%d goroutines of daemons are left", n)
	}
	for rank, server := range d.servers {
		if programs := server.Attached(); len(programs) > 0 {
			t.Errorf("rank %d: %+v is still attached", rank, programs)
		}
	}
}
