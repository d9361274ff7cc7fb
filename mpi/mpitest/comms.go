package mpitest

import (
	"fmt"
	"slices"
	"sync"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// checkSeparate checks that messages with the same tag in two communicators of the same ranks do not get mixed up, in
// whatever order they are received.
func (r *rank) checkSeparate(comm, b *mpi.Comm) {
	r.t.Helper()
	right, left := (comm.Rank()+1)%comm.Size(), (comm.Rank()+comm.Size()-1)%comm.Size()
	sendA := must(mpi.Isend(comm, []int32{1}, right, 4))(r)
	sendB := must(mpi.Isend(b, []int32{2}, right, 4))(r)
	v := []int32{0}
	st := must(mpi.Recv(r.ctx, b, v, mpi.AnySource, mpi.AnyTag))(r)
	checkEqual(r, "number", v[0], 2)
	checkEqual(r, "source", st.Source, left)
	must(mpi.Recv(r.ctx, comm, v, mpi.AnySource, mpi.AnyTag))(r)
	checkEqual(r, "number", v[0], 1)
	r.must(mpi.Waitall(r.ctx, []mpi.Request{sendA, sendB}, nil))
}

func dup(r *rank) {
	twin := must(r.Dup(r.ctx))(r)
	checkEqual(r, "rank", twin.Rank(), r.Rank())
	checkEqual(r, "size", twin.Size(), r.Size())
	checkEqual(r, "comparison", r.Compare(twin), mpi.Congruent)
	checkEqual(r, "comparison", r.Compare(r.Comm), mpi.Ident)
	checkEqual(r, "name of the world", r.Name(), "world")
	checkEqual(r, "name", twin.Name(), "")
	twin.SetName("twin")
	checkEqual(r, "name", twin.Name(), "twin")
	r.checkSeparate(r.Comm, twin)
	third := must(twin.Dup(r.ctx))(r)
	r.checkSeparate(twin, third)
	r.checkSeparate(r.Comm, third)
	for range 20 {
		third = must(third.Dup(r.ctx))(r)
		r.checkSeparate(twin, third)
	}
}

// dupDeadline checks that Dup fails when its context is done before all members have called it. The communicator must
// still be usable in other ways afterwards.
func dupDeadline(r *rank) {
	comm := must(r.Dup(r.ctx))(r)
	if r.Rank() != 1 {
		ctx, stop := r.shortContext()
		defer stop()
		_, err := comm.Dup(ctx)
		r.checkDeadline(err)
		_, err = comm.Split(r.ctx, 0, 0) // at once
		r.checkError(err, mpi.ErrComm, "Create")
	}
	r.checkSeparate(r.Comm, comm)
	r.checkSeparate(comm, must(comm.Create(r.ctx, comm.Group(), 1))(r))
	r.checkSeparate(comm, must(r.Dup(r.ctx))(r))
}

// split tests Split with two colors in which the keys reverse the order of ranks, and with ranks that have no color.
func split(r *rank) {
	n := r.Size()
	color := r.Rank() % 3
	if color == 2 {
		color = mpi.Undefined
	}
	part := must(r.Split(r.ctx, color, -r.Rank()))(r)
	if color == mpi.Undefined {
		if part != nil {
			r.fatalf("color Undefined gave %v", part)
		}
		checkEqual(r, "rank", part.Rank(), mpi.Undefined)
		checkEqual(r, "size", part.Size(), 0)
		checkEqual(r, "comparison", r.Compare(part), mpi.Unequal)
	} else {
		var want []int // ranks of the world
		for w := n - 1; w >= 0; w-- {
			if w%3 == color {
				want = append(want, w)
			}
		}
		checkEqual(r, "size", part.Size(), len(want))
		world := must(part.Group().Translate([]int{0, 1}, r.Group()))(r)
		if !slices.Equal(world, want) {
			r.fatalf("the ranks are %v, not %v", world, want)
		}
		checkEqual(r, "rank", part.Rank(), slices.Index(want, r.Rank()))
		sum := []int32{0}
		other := 1 - part.Rank()
		st := must(mpi.Sendrecv(r.ctx, part, []int32{int32(r.Rank())}, other, 0, sum, mpi.AnySource, 0))(r)
		checkEqual(r, "source", st.Source, other)
		checkEqual(r, "number", int(sum[0]), want[other])
		r.checkSeparate(part, must(part.Dup(r.ctx))(r))
	}
	// Ranks with equal keys keep their order. A communicator of all ranks is congruent or similar to the world.
	same := must(r.Split(r.ctx, 7, 0))(r)
	checkEqual(r, "comparison", same.Compare(r.Comm), mpi.Congruent)
	turned := must(same.Split(r.ctx, 0, n-r.Rank()))(r)
	checkEqual(r, "comparison", turned.Compare(same), mpi.Similar)
	checkEqual(r, "rank", turned.Rank(), n-1-r.Rank())
	none := must(r.Split(r.ctx, mpi.Undefined, 0))(r)
	if none != nil {
		r.fatalf("color Undefined gave %v", none)
	}
}

// create tests creating a communicator from some of the ranks, while the other ranks do something else.
func create(r *rank) {
	group := must(r.Group().Incl(3, 1, 2))(r)
	if r.Rank() == 0 {
		if c := must(r.Create(r.ctx, group, 5))(r); c != nil {
			r.fatalf("a rank that is no member got %v", c)
		}
		return
	}
	c := must(r.Create(r.ctx, group, 5))(r)
	checkEqual(r, "rank", c.Rank(), []int{mpi.Undefined, 1, 2, 0}[r.Rank()])
	checkEqual(r, "comparison", c.Compare(r.Comm), mpi.Unequal)
	r.checkSeparate(c, must(c.Dup(r.ctx))(r))
	_, err := c.Create(r.ctx, r.Group(), 5)
	r.checkClass(err, mpi.ErrGroup)
	alone := must(r.Create(r.ctx, must(r.Group().Incl(r.Rank()))(r), 5))(r)
	checkEqual(r, "size", alone.Size(), 1)
	b := []int32{0}
	must(mpi.Sendrecv(r.ctx, alone, []int32{9}, 0, 0, b, 0, 0))(r)
	checkEqual(r, "number", b[0], 9)
}

// concurrentCreates repeatedly makes overlapping communicators at the same time.
func concurrentCreates(r *rank) {
	const tags, rounds = 6, 10
	made := map[string]bool{r.String(): true}
	for round := range rounds {
		comms := make([]*mpi.Comm, tags)
		var wg sync.WaitGroup
		for i := range comms {
			members := []int{0, 1 + i%3}
			if i >= 3 {
				members = []int{3, 2, 1, 0}
			}
			if !slices.Contains(members, r.Rank()) {
				continue
			}
			group := must(r.Group().Incl(members...))(r)
			wg.Go(func() {
				c, err := r.Create(r.ctx, group, round*tags+i)
				if err != nil {
					r.t.Error(err)
					r.stop(errStopped)
				}
				comms[i] = c
			})
		}
		wg.Wait()
		if r.ctx.Err() != nil {
			r.fatalf("stopped")
		}
		for _, c := range comms {
			if c != nil && made[c.String()] {
				r.fatalf("there are two with the name of %v", c)
			}
			made[c.String()] = true
		}
		r.exchangeInAll(comms)
	}
}

// exchangeInAll sends messages to all members in all communicators at the same time. Each member must receive, in each
// communicator, only the messages sent there.
func (r *rank) exchangeInAll(comms []*mpi.Comm) {
	r.t.Helper()
	var requests []mpi.Request
	for i, c := range comms {
		for to := range c.Size() {
			requests = append(requests, must(mpi.Isend(c, []int32{int32(i)}, to, 0))(r))
		}
	}
	for i, comm := range slices.Backward(comms) {
		from := make(map[int]bool)
		for range comm.Size() {
			b := []int32{-1}
			st := must(mpi.Recv(r.ctx, comm, b, mpi.AnySource, mpi.AnyTag))(r)
			checkEqual(r, "communicator", int(b[0]), i)
			from[st.Source] = true
		}
		checkEqual(r, "sources", len(from), comm.Size())
	}
	r.must(mpi.Waitall(r.ctx, requests, nil))
}

func free(r *rank) {
	r.checkClass(r.Free(), mpi.ErrComm)
	comm := must(r.Dup(r.ctx))(r)
	other := 1 - r.Rank()
	b := []int32{0}
	q := must(mpi.Irecv(comm, b, other, 0))(r)
	r.must(mpi.Send(r.ctx, comm, []int32{3}, other, 0))
	again := must(mpi.RecvInit(comm, b, other, 0))(r)
	r.must(comm.Free())
	must(q.Wait(r.ctx))(r) // continues
	checkEqual(r, "number", b[0], 3)
	r.checkClass(mpi.Send(r.ctx, comm, b, other, 0), mpi.ErrComm)
	r.checkClass(again.Start(), mpi.ErrComm)
	r.checkClass(comm.Free(), mpi.ErrComm)
	_, err := comm.Dup(r.ctx)
	r.checkClass(err, mpi.ErrComm)
	r.checkSeparate(r.Comm, must(r.Dup(r.ctx))(r))
}

// threads exchanges ping-pong messages from several goroutines on the same communicator.
func threads(r *rank) {
	const n, rounds = 8, 50
	other := 1 - r.Rank()
	failed := make(chan error, n)
	for tag := range n {
		go func() {
			failed <- func() error {
				for i := range rounds {
					b := make([]int32, 1+100*tag)
					_, err := mpi.Sendrecv(r.ctx, r.Comm, pattern(len(b), i), other, tag, b, other, tag)
					if err != nil {
						return err
					}
					if !slices.Equal(b, pattern(len(b), i)) {
						return fmt.Errorf("goroutine %d received the wrong message in round %d", tag, i)
					}
				}
				return nil
			}()
		}()
	}
	var err error
	for range n {
		if e := <-failed; e != nil {
			err = e
		}
	}
	r.must(err)
}
