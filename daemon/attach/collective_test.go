package attach

import (
	"bytes"
	"context"

	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/extended"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/attach/attachtest"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/collcheck"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// deviceList implements Ranks. Rank r is its element r.
type deviceList []mpe.Device

func (l deviceList) Hosts() (ranks []int) {
	for r := range l {
		ranks = append(ranks, r)
	}
	return ranks
}

func (l deviceList) Device(rank int) (mpe.Device, error) {
	if rank < 0 || rank >= len(l) {
		return nil, fmt.Errorf("rank %d: %w", rank, mpe.ErrRank)
	}
	return l[rank], nil
}

// engines returns a cluster on an in-memory network. change, if not nil, modifies how two ranks communicate.
func engines(t testing.TB, n int, change func(a, b int, p *mpe.Peer)) []mpe.Device {
	t.Helper()
	net := memnet.New(n)
	devices := make([]mpe.Device, n)
	for rank := range n {
		devices[rank] = engine(t, net, rank, n, change)
	}
	return devices
}

func engine(t testing.TB, net *memnet.Net, rank, n int, change func(a, b int, p *mpe.Peer)) *mpe.Engine {
	t.Helper()
	cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, n)}
	tr := net.Transport(rank)
	for other := range n {
		p := &cfg.Peers[other]
		p.Transport = tr
		p.Handshake = handshake.Config{Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(handshake.PeerRules{}),
			MaxWords: 1 << 20}
		p.Extended = &extended.Config{Seed: uint64(rank*100 + other + 1)}
		if change != nil {
			change(rank, other, p)
		}
	}
	e, err := mpe.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ended, stop := context.WithCancel(context.Background())
		stop()
		_ = e.Close(ended) // the test may already have closed it
	})
	return e
}

// serveDevices starts a server that offers the given devices.
func serveDevices(t testing.TB, devices []mpe.Device, opts Options) *harness {
	t.Helper()
	h := &harness{server: NewServer(deviceList(devices), opts), socket: attachtest.SocketPath(t),
		ended: make(chan error, 1)}
	l, err := net.Listen("unix", h.socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	go func() { h.ended <- h.server.Serve(ctx, l) }()
	t.Cleanup(func() { h.shutDown(t) })
	return h
}

// attachSome returns devices in which the given ranks have been replaced with attached clients.
func attachSome(t testing.TB, devices []mpe.Device, ranks ...int) []mpe.Device {
	t.Helper()
	return serveDevices(t, devices, Options{}).attachSome(t, devices, ranks...)
}

func (h *harness) attachSome(t testing.TB, devices []mpe.Device, ranks ...int) []mpe.Device {
	t.Helper()
	devices = slices.Clone(devices)
	for _, r := range ranks {
		devices[r] = h.dial(t, r)
	}
	return devices
}

// round makes a call on all ranks and compares the results with the schedule checker's. number distinguishes the call
// from other calls.
func round(t *testing.T, devices []mpe.Device, calls []coll.Call, number int, algorithm string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(uint64(number), 7))
	have, want := make([]collcheck.Data, len(calls)), make([]collcheck.Data, len(calls))
	for r := range calls {
		send, recv := collcheck.Buffers(&calls[r])
		b := attachtest.Pattern(rng.Uint64(), send+recv+16)
		have[r] = collcheck.Data{Send: b[:send:send], Recv: b[send : send+recv+16]} // with 16 bytes not in the call
		want[r] = collcheck.Data{Send: bytes.Clone(have[r].Send), Recv: bytes.Clone(have[r].Recv)}
	}
	sum, err := op.Lookup(op.Sum, op.Int16)
	if err != nil {
		t.Fatal(err)
	}
	if err := collcheck.Execute(coll.Algorithms(calls[0].Collective)[0], calls, want, sum); err != nil {
		t.Fatal(err)
	}
	members := make([]int, len(calls))
	for i := range members { // every other call uses a communicator in a different order
		if members[i] = i; number%2 == 1 {
			members[i] = len(calls) - 1 - i
		}
	}
	errs := make([]error, len(calls))
	ctx, cancel := context.WithCancelCause(attachtest.TestContext(t)) // if one rank fails, cancel the calls of all others
	defer cancel(nil)
	var all sync.WaitGroup
	for r := range calls {
		all.Go(func() {
			o, err := devices[members[r]].StartCollective(&collective.Operation{
				Call: calls[r], Members: members, Comm: uint32(1 + number%2), Tag: 1 + number, Send: have[r].Send,
				Recv: have[r].Recv,
				Op:   op.Sum, Type: op.Int16, Algorithm: algorithm,
			})
			if err == nil {
				_, err = o.Await(ctx)
				o.Free()
			}
			if errs[r] = err; err != nil {
				cancel(err)
			}
		})
	}
	all.Wait()
	for r, err := range errs {
		c := &calls[r]
		if err != nil {
			t.Fatalf("%+v: rank %d: %v", calls[r], r, err)
		}
		if c.Collective == coll.ReduceScatter && c.InPlace { // the rest is undefined
			_, n := c.Block(&c.Recv, r)
			have[r].Recv, want[r].Recv = have[r].Recv[:n], want[r].Recv[:n]
		}
		if !bytes.Equal(have[r].Recv, want[r].Recv) || !bytes.Equal(have[r].Send, want[r].Send) {
			t.Fatalf("%+v: rank %d has\n%v, and must have\n%v", calls[r], r, have[r].Recv, want[r].Recv)
		}
	}
}

// TestCollectives checks that attached ranks and other ranks get the same results.
func TestCollectives(t *testing.T) {
	leaksNothing(t)
	for _, tt := range []struct {
		ranks    int
		attached []int
	}{{1, []int{0}}, {2, []int{0, 1}}, {3, []int{1}}, {4, []int{0, 1, 2, 3}}, {5, []int{0, 2, 3, 4}}} {
		t.Run(fmt.Sprintf("%v of %d", tt.attached, tt.ranks), func(t *testing.T) {
			devices := attachSome(t, engines(t, tt.ranks, nil), tt.attached...)
			for i, calls := range attachtest.AllCalls(tt.ranks, []int{0, 2, 38, wire.CopyLen + 2}) {
				round(t, devices, calls, i, "")
			}
		})
	}
}

// TestLongCollectives checks payloads and results that need many frames.
func TestLongCollectives(t *testing.T) {
	devices := attachSome(t, engines(t, 3, nil), 0, 2)
	for i, calls := range attachtest.AllCalls(3, []int{wire.ChunkLen + wire.CopyLen + 10}) {
		round(t, devices, calls, i, "")
	}
}

// TestCollectiveAlgorithms checks algorithms selected by name, and their segments.
func TestCollectiveAlgorithms(t *testing.T) {
	devices := attachSome(t, engines(t, 4, nil), 0, 1, 3)
	number := 0
	for of := coll.Barrier; of <= coll.Exscan; of++ {
		for _, a := range coll.Algorithms(of) {
			calls := attachtest.CallsByRank(coll.Call{Collective: of, Ranks: 4, Elem: 2, Bytes: 1000, Segment: 30})
			calls[0].Flows = true
			if a.CheckSupport(calls[0]) != nil {
				continue // the tree needs FPGAs
			}
			calls[0].Flows = false
			round(t, devices, calls, number, a.Name)
			number++
		}
	}
	if number < 25 {
		t.Errorf("%d algorithms were tried", number)
	}
}
