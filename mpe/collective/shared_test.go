package collective

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
)

// sumOf returns an Allreduce of n bytes, each of which depends on the rank and the number of the call.
func sumOf(algorithm string, ranks, rank, tag, n int) (o Operation, want []byte) {
	value := func(rank, i int) byte { return byte(rank*7 + i*3 + tag) }
	send := make([]byte, n)
	want = make([]byte, n)
	for i := range send {
		send[i] = value(rank, i)
		for r := range ranks {
			want[i] += value(r, i)
		}
	}
	return Operation{
		Call: coll.Call{Collective: coll.Allreduce, Bytes: n, Elem: 1}, Send: send, Recv: make([]byte, n),
		Op: op.Sum, Type: op.Uint8, Algorithm: algorithm,
	}, want
}

// TestShared checks the results of calls on shared buffers, of one chunk and of several, consecutive and concurrent,
// and between calls with messages.
func TestShared(t *testing.T) {
	for _, ranks := range []int{2, 3, 5} {
		w := newWorld(ranks, nil).share(3)
		tag := 0
		for _, algorithm := range []string{"shared", "shared-blocks", "ring", "shared"} {
			for _, n := range []int{1, 7, fakeHalf, fakeHalf + 1, 5 * fakeHalf, 0} {
				const atOnce = 4
				type made struct {
					end        *outcome
					have, want []byte
				}
				var all []made
				for i := range atOnce {
					for rank := range ranks {
						o, want := sumOf(algorithm, ranks, rank, tag+1+i, n)
						o.Tag = tag + 1 + i
						_, end := w.start(t, rank, o)
						all = append(all, made{end, o.Recv, want})
					}
				}
				tag += atOnce
				w.run()
				for _, m := range all {
					if !m.end.ended || m.end.err != nil || !bytes.Equal(m.have, m.want) {
						t.Fatalf("%d ranks, %s, %d bytes: %+v, %v, want %v", ranks, algorithm, n, m.end, m.have, m.want)
					}
				}
			}
		}
		if s := (*w)[0].calls.slots[0]; s == nil || s.posted == 0 {
			t.Error("no call went by shared buffers")
		}
	}
}

// TestSharedBeforeLinks ends a rank that has nothing to wait for in its first call. The rank must not publish
// before the other ranks can read its buffer.
func TestSharedBeforeLinks(t *testing.T) {
	const ranks = 3
	for _, first := range []string{"none", "bcast"} {
		w := newWorld(ranks, nil).share(1)
		(*w)[0].shared.absent[2], (*w)[2].shared.absent[0] = true, true
		tag := 1
		if first == "bcast" { // only the root publishes, and it has the buffers
			w.all(t, tag, func(rank int) Operation {
				return Operation{Call: coll.Call{Collective: coll.Bcast, Bytes: 1, Elem: 1, Root: 1},
					Recv: []byte{byte(rank)}, Algorithm: "shared"}
			})
			tag++
		}
		var ends [ranks]*outcome
		recv := make([]byte, 1)
		for rank := range ranks {
			o := Operation{Call: coll.Call{Collective: coll.Reduce, Bytes: 1, Elem: 1}, Send: []byte{byte(rank + 1)},
				Op: op.Sum, Type: op.Uint8, Algorithm: "shared", Tag: tag}
			if rank == 0 {
				o.Recv = recv
			}
			_, ends[rank] = w.start(t, rank, o)
		}
		w.run()
		if ends[0].ended || !ends[1].ended || ends[2].ended {
			t.Fatalf("%s: before there is a link between ranks 0 and 2: %+v, %+v, %+v", first, ends[0], ends[1],
				ends[2])
		}
		clear((*w)[0].shared.absent)
		clear((*w)[2].shared.absent)
		w.run()
		for rank, end := range ends {
			if !end.ended || end.err != nil || recv[0] != 6 {
				t.Errorf("%s: rank %d: %+v, sum %d", first, rank, end, recv[0])
			}
		}
	}
}

// TestNotShared checks that calls with a user's function, and communicators without a slot, use messages.
func TestNotShared(t *testing.T) {
	w := newWorld(3, nil).share(1)
	user := func(in, inout []byte) error { inout[0] += in[0]; return nil }
	w.all(t, 1, func(rank int) Operation {
		return Operation{Call: coll.Call{Collective: coll.Allreduce, Bytes: 1, Elem: 1}, Send: []byte{1},
			Recv: make([]byte, 1), User: user}
	})
	if s := (*w)[0].calls.slots[0]; s == nil || s.posted != 0 {
		t.Fatalf("%+v", s)
	}
	o := Operation{Call: coll.Call{Collective: coll.Barrier, Ranks: 3}, Members: []int{0, 1, 2}, Comm: 2, Tag: 1,
		Algorithm: "shared"}
	var ends []*outcome
	for rank, f := range *w {
		o.Call.Rank = rank
		x, end := new(Execution), new(outcome)
		if err := errors.Join(x.Prepare(&o, f), f.calls.Start(x, end)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	w.run()
	for rank, end := range ends {
		if !end.ended || !errors.Is(end.err, coll.ErrCall) {
			t.Errorf("rank %d: %+v", rank, end)
		}
	}
}

// mixed returns one call from a sequence of calls with several kinds and lengths, and the required content of the
// rank's receive buffer.
func mixed(i, ranks, rank int) (o Operation, want []byte) {
	n, root := 1+i%3*2*fakeHalf, i%ranks
	o, want = sumOf([]string{"shared", "shared-blocks"}[i%2], ranks, rank, i, n)
	switch i % 5 {
	case 0:
		o.Call.Collective, o.Call.Root = coll.Reduce, root
		if rank != root {
			o.Recv, want = nil, nil
		}
	case 1, 2:
		o, _ = sumOf("", ranks, root, i, n)
		o.Call.Collective, o.Call.Root, o.Algorithm = coll.Bcast, root, "shared"
		want = o.Send
		if rank == root {
			o.Recv = o.Send
		}
		o.Send = nil
	case 3:
		return Operation{Call: coll.Call{Collective: coll.Barrier}, Algorithm: "shared"}, nil
	}
	return o, want
}

// TestSharedAbandoned checks that a call that one rank abandons fails on all ranks that have not completed it,
// whenever they make the call, and that later calls have correct results.
func TestSharedAbandoned(t *testing.T) {
	const ranks = 4
	enough := errors.New("enough")
	for seed := range uint64(500) {
		rng := rand.New(rand.NewPCG(seed, 3))
		w := newWorld(ranks, nil).share(2)
		w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
		type made struct {
			x          *Execution
			end        *outcome
			have, want []byte
		}
		const calls = 15
		var all [ranks][]made
		start := func(rank int) {
			i := len(all[rank])
			o, want := mixed(i, ranks, rank)
			o.Tag = 2 + i
			x, end := w.start(t, rank, o)
			all[rank] = append(all[rank], made{x, end, o.Recv, want})
		}
		abandoned := map[int]bool{}
		for range 400 {
			rank := rng.IntN(ranks)
			f := (*w)[rank]
			switch {
			case rng.IntN(3) > 0:
				f.step()
			case len(all[rank]) < calls && rng.IntN(4) > 0:
				start(rank)
			case len(all[rank]) > 0:
				i := rng.IntN(len(all[rank]))
				if m := all[rank][i]; !m.end.ended {
					abandoned[i] = true
					m.x.Abort(enough)
				}
			}
		}
		for rank := range ranks { // make the remaining calls
			for len(all[rank]) < calls {
				start(rank)
			}
		}
		w.run()
		for rank := range all {
			for i, m := range all[rank] {
				switch {
				case !m.end.ended:
					t.Fatalf("seed %d: call %d of rank %d is not done (abandoned: %v)", seed, i, rank, abandoned)
				case m.end.err == nil && !bytes.Equal(m.have, m.want):
					t.Fatalf("seed %d: call %d of rank %d has a wrong result", seed, i, rank)
				case m.end.err != nil && !abandoned[i]:
					t.Fatalf("seed %d: call %d of rank %d: %v", seed, i, rank, m.end.err)
				}
			}
		}
	}
}

// TestSharedPeerLost checks that data that a lost rank has published can still be read, and that calls that need
// more data from it fail, and so do later calls.
func TestSharedPeerLost(t *testing.T) {
	w := newWorld(3, nil).share(1)
	w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
	bcast := func(rank, tag int) (*outcome, []byte) {
		b := []byte{0}
		if rank == 2 {
			b[0] = 5
		}
		_, end := w.start(t, rank,
			Operation{Call: coll.Call{Collective: coll.Bcast, Root: 2, Bytes: 1}, Recv: b, Tag: tag,
				Algorithm: "shared"})
		return end, b
	}
	root, _ := bcast(2, 2)
	(*w)[2].step()
	if !root.ended {
		t.Fatal("the root waits")
	}
	gone := errors.New("gone")
	(*w)[0].calls.OnPeerLost(2, gone)
	first, b := bcast(0, 2)
	(*w)[0].step()
	if !first.ended || first.err != nil || b[0] != 5 {
		t.Fatalf("%+v, %v", first, b)
	}
	second, _ := bcast(0, 3)
	(*w)[0].step()
	failed, ok := errors.AsType[*StepError](second.err)
	if !ok || failed.Peer != 2 || !errors.Is(second.err, gone) {
		t.Fatalf("%+v", second)
	}
	// Another process becomes the rank, with the sequence that the lost process would have.
	(*w)[2].shared.slots[0].epoch = 77
	(*w)[2].shared.slots[0].sequence = sequence(9, 0)
	third, b := bcast(1, 2)
	(*w)[1].step()
	if third.ended {
		t.Fatalf("%+v, %v", third, b)
	}
	(*w)[1].calls.OnPeerLost(2, gone)
	(*w)[1].step()
	if !errors.Is(third.err, gone) || b[0] != 0 {
		t.Fatalf("%+v, %v", third, b)
	}
}

// TestSharedMismatch checks that ranks that make different calls, or miss one call, get no result of the other call.
func TestSharedMismatch(t *testing.T) {
	for name, test := range map[string]struct {
		second func(o *Operation)
		says   string
	}{
		"another length": {func(o *Operation) { o.Call.Bytes = 2 },
			"rank 1 has called Allreduce of 2 bytes by SUM, but this rank called Allreduce of 4 bytes by SUM"},
		"another operation": {func(o *Operation) { o.Op = op.Max },
			"rank 1 has called Allreduce of 4 bytes by MAX, but this rank called Allreduce of 4 bytes by SUM"},
		"another collective": {func(o *Operation) { o.Call.Collective = coll.Scan },
			"rank 1 has called Scan of 4 bytes"},
		"the call after it": {func(o *Operation) { o.Tag++ },
			"rank 1 has made another call, but this rank called Allreduce of 4 bytes by SUM"},
	} {
		w := newWorld(2, nil).share(1)
		w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
		var ends []*outcome
		for rank := range 2 {
			o, _ := sumOf("shared", 2, rank, 2, 4)
			if o.Tag = 2; rank == 1 {
				test.second(&o)
			}
			_, end := w.start(t, rank, o)
			ends = append(ends, end)
		}
		w.run()
		for rank, end := range ends {
			if !end.ended || !errors.Is(end.err, ErrMismatch) && !errors.Is(end.err, ErrCallFailed) {
				t.Errorf("%s: rank %d: %+v", name, rank, end)
			}
			if rank == 0 && errors.Is(end.err, ErrMismatch) && !strings.Contains(end.err.Error(), test.says) {
				t.Errorf("%s: %v", name, end.err)
			}
		}
	}
}

// TestSharedFreed checks that communicators release their slots when all members have freed them, whichever calls are
// in progress, and that no rank overwrites data that another one still reads.
func TestSharedFreed(t *testing.T) {
	const ranks, slots, comms, most = 4, 2, 12, 4
	shared := 0
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 4))
		w := newWorld(ranks, nil).share(slots)
		type made struct {
			comm       int
			end        *outcome
			have, want []byte
		}
		var all []made
		// Each rank executes its program in the order of the communicators.
		var program [ranks][]func()
		for comm := 2; comm < 2+comms; comm++ {
			members := rng.Perm(ranks)[:2+rng.IntN(ranks-1)]
			for tag := range 1 + rng.IntN(most) {
				for i, rank := range members {
					program[rank] = append(program[rank], func() {
						o, want := sumOf("", len(members), i, comm+tag, 1+tag*fakeHalf)
						o.Comm, o.Tag, o.Members = uint32(comm), 1+tag, members
						_, end := w.startIn(t, rank, o)
						all = append(all, made{comm, end, o.Recv, want})
					})
				}
			}
			for _, rank := range members {
				program[rank] = append(program[rank], func() {
					e := (*w)[rank].calls
					if a := e.agreements[uint32(comm)]; a.sharing != nil && a.sharing.posted > 0 {
						shared++
					}
					e.Free(uint32(comm))
				})
			}
		}
		for slices.ContainsFunc(program[:], func(p []func()) bool { return len(p) > 0 }) {
			rank := rng.IntN(ranks)
			if p := program[rank]; len(p) > 0 && rng.IntN(4) == 0 {
				p[0]()
				program[rank] = p[1:]
			} else {
				(*w)[rank].step()
			}
		}
		w.run()
		for _, m := range all {
			if !m.end.ended || m.end.err != nil || !bytes.Equal(m.have, m.want) {
				t.Fatalf("seed %d: communicator %d: %+v, %v, want %v", seed, m.comm, m.end, m.have, m.want)
			}
		}
		w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
		for rank, f := range *w {
			if e := f.calls; len(e.agreements) != 1 || e.agreements[1].sharing == nil ||
				e.slotsInUse != 1<<e.agreements[1].sharing.slot {
				t.Fatalf("seed %d: rank %d has %d agreements, slots %b", seed, rank, len(e.agreements), e.slotsInUse)
			}
		}
	}
	if shared == 0 {
		t.Error("no communicator had a slot")
	}
}

// TestSharedReport checks that a waiting call names the rank that it waits for, in reports and in the error when its
// caller abandons it.
func TestSharedReport(t *testing.T) {
	w := newWorld(3, nil).share(1)
	w.all(t, 1, func(int) Operation { return Operation{Call: coll.Call{Collective: coll.Barrier}} })
	barrier := Operation{Call: coll.Call{Collective: coll.Barrier}, Tag: 2, Algorithm: "shared"}
	x, end := w.start(t, 0, barrier)
	w.start(t, 1, barrier)
	w.run()
	calls := (*w)[0].calls.Calls()
	if len(calls) != 1 || !slices.Equal(calls[0].WaitsFor, []int{2}) {
		t.Fatalf("%+v", calls)
	}
	if calls[0].Describe(); calls[0].Text != "Barrier by shared, begun 0s ago, waits for rank 2" {
		t.Errorf("%+v", calls)
	}
	var waits []string
	(*w)[0].calls.EachAwait(func(rank int, _ handshake.Instant,
		of Origin) {
		waits = append(waits, fmt.Sprint(rank, of.AwaitSuffix()))
	})
	if !slices.Equal(waits, []string{"2 in Barrier by shared, call 2 in communicator 1"}) {
		t.Error(waits)
	}
	enough := errors.New("enough")
	x.Abort(enough)
	await, ok := errors.AsType[*AwaitError](end.err)
	if !ok || await.Rank != 2 || !errors.Is(end.err, enough) {
		t.Errorf("%v", end.err)
	}
	if text := end.err.Error(); text != "Barrier by shared, step 2, await of 0 bytes from rank 2: it waits for rank "+
		"2: enough" {
		t.Error(text)
	}
}
