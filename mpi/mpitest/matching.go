package mpitest

import (
	"math/rand/v2"
	"slices"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// order checks that messages of all sizes and modes do not overtake each other.
func order(r *rank) {
	const n = 300
	if r.Rank() == 1 {
		for i := range n {
			b := make([]int32, sizes[len(sizes)-1])
			st := must(mpi.Recv(r.ctx, r.Comm, b, 0, mpi.AnyTag))(r)
			checkEqual(r, "tag", st.Tag, i)
			checkEqual(r, "count", mpi.Count[int32](st), sizes[i%len(sizes)])
			r.checkPattern(b, sizes[i%len(sizes)], i)
		}
		return
	}
	var requests []mpi.Request
	for i := range n {
		start := mpi.Isend[int32]
		if i%7 == 3 {
			start = mpi.Issend[int32]
		}
		requests = append(requests, must(start(r.Comm, pattern(sizes[i%len(sizes)], i), 1, i))(r))
	}
	r.must(mpi.Waitall(r.ctx, requests, nil))
}

// tags receives messages with different tags in random order, and compares the results with a list of the messages
// sent.
func tags(r *rank) {
	const n, kinds = 400, 5
	random := rand.New(rand.NewPCG(1, 2)) // the same sequence on both ranks
	var sent []int
	for range n {
		sent = append(sent, random.IntN(kinds))
	}
	if r.Rank() == 0 {
		var requests []mpi.Request
		for i, tag := range sent {
			requests = append(requests, must(mpi.Isend(r.Comm, pattern(sizes[i%4], i), 1, tag*mpi.TagUB/kinds))(r))
		}
		r.must(mpi.Waitall(r.ctx, requests, nil))
		return
	}
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		at := 0
		want := mpi.AnyTag
		if random.IntN(2) == 0 {
			tag := sent[left[random.IntN(len(left))]]
			want = tag * mpi.TagUB / kinds
			at = slices.IndexFunc(left, func(i int) bool { return sent[i] == tag })
		}
		i := left[at]
		left = slices.Delete(left, at, at+1)
		b := make([]int32, 400)
		st := must(mpi.Recv(r.ctx, r.Comm, b, 0, want))(r)
		checkEqual(r, "tag", st.Tag, sent[i]*mpi.TagUB/kinds)
		checkEqual(r, "count", mpi.Count[int32](st), sizes[i%4])
		r.checkPattern(b, sizes[i%4], i)
	}
}

// wildcards checks that receives from any source preserve the order of messages from each source.
func wildcards(r *rank) {
	const n = 60
	if r.Rank() > 0 {
		for i := range n {
			r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(r.Rank()), int32(i)}, 0, i%3))
		}
		return
	}
	next := make([][3]int, r.Size())
	for s := range next {
		next[s] = [3]int{0, 1, 2}
	}
	for i := range n * (r.Size() - 1) {
		tag := mpi.AnyTag
		if i < n/2 {
			tag = i % 3 // each tag is sent equally often
		}
		b := make([]int32, 2)
		st := must(mpi.Recv(r.ctx, r.Comm, b, mpi.AnySource, tag))(r)
		checkEqual(r, "source", st.Source, int(b[0]))
		checkEqual(r, "tag", st.Tag, int(b[1])%3)
		checkEqual(r, "number", int(b[1]), next[st.Source][st.Tag])
		next[st.Source][st.Tag] += 3
		if tag != mpi.AnyTag {
			checkEqual(r, "tag", st.Tag, tag)
		}
	}
}

// postedOrder checks that a message goes to the first posted receive that it matches.
func postedOrder(r *rank) {
	if r.Rank() == 0 {
		r.await(1)
		for i, tag := range []int{5, 6, 5, 7} {
			r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(i)}, 1, tag))
		}
		return
	}
	asked := []struct{ source, tag, gets int }{
		{0, 6, 1}, {mpi.AnySource, mpi.AnyTag, 0}, {mpi.AnySource, 5, 2}, {0, mpi.AnyTag, 3},
	}
	bufs := make([][1]int32, len(asked))
	var requests []mpi.Request
	for i, a := range asked {
		requests = append(requests, must(mpi.Irecv(r.Comm, bufs[i][:], a.source, a.tag))(r))
	}
	r.notify(0, 0)
	r.must(mpi.Waitall(r.ctx, requests, nil))
	for i, a := range asked {
		checkEqual(r, "message", int(bufs[i][0]), a.gets)
	}
}

// probe checks that Probe returns the size of a message, and that a receive of that size then gets this message.
func probe(r *rank) {
	const tag = 9
	if r.Rank() > 0 {
		r.await(0)
		for i, n := range sizes {
			r.must(mpi.Send(r.ctx, r.Comm, pattern(n, i), 0, tag+i))
		}
		return
	}
	st, found, err := mpi.Iprobe(r.Comm, mpi.AnySource, mpi.AnyTag)
	r.must(err)
	if found {
		r.fatalf("Iprobe found %+v where nothing was sent", st)
	}
	r.notify(1, 0)
	r.notify(2, 0)
	for range 2 * len(sizes) {
		st := must(mpi.Probe(r.ctx, r.Comm, mpi.AnySource, mpi.AnyTag))(r)
		again, found, err := mpi.Iprobe(r.Comm, st.Source, st.Tag)
		r.must(err)
		if !found || again != st {
			r.fatalf("Iprobe says %+v, %v where Probe said %+v", again, found, st)
		}
		i := st.Tag - tag
		n := mpi.Count[int32](st)
		checkEqual(r, "count", n, sizes[i])
		b := make([]int32, n)
		received := must(mpi.Recv(r.ctx, r.Comm, b, st.Source, st.Tag))(r)
		checkEqual(r, "status", received, st)
		r.checkPattern(b, n, i)
	}
}

// self tests messages that a rank sends to itself.
func self(r *rank) {
	for i, n := range sizes {
		b := make([]int32, n)
		request := must(mpi.Irecv(r.Comm, b, mpi.AnySource, i))(r)
		r.must(mpi.Ssend(r.ctx, r.Comm, pattern(n, i), r.Rank(), i))
		st := must(request.Wait(r.ctx))(r)
		checkEqual(r, "source", st.Source, r.Rank())
		r.checkPattern(b, n, i)

		request = must(mpi.Isend(r.Comm, pattern(n, i+50), r.Rank(), i))(r)
		st = must(mpi.Probe(r.ctx, r.Comm, r.Rank(), i))(r)
		checkEqual(r, "count", mpi.Count[int32](st), n)
		must(mpi.Recv(r.ctx, r.Comm, b, r.Rank(), mpi.AnyTag))(r)
		must(request.Wait(r.ctx))(r)
		r.checkPattern(b, n, i+50)

		b = pattern(n, i+100)
		must(mpi.SendrecvReplace(r.ctx, r.Comm, b, r.Rank(), 1, r.Rank(), 1))(r)
		r.checkPattern(b, n, i+100)
	}
}

// procNull checks that every call with ProcNull succeeds at once and does nothing.
func procNull(r *rank) {
	b := []int32{42}
	null := mpi.Status{Source: mpi.ProcNull, Tag: mpi.AnyTag}
	comm := r.Comm
	r.must(mpi.Send(r.ctx, comm, b, mpi.ProcNull, 1))
	r.must(mpi.Ssend(r.ctx, comm, b, mpi.ProcNull, 1))
	r.must(mpi.Rsend(r.ctx, comm, b, mpi.ProcNull, 1))
	r.must(mpi.Bsend(comm, b, mpi.ProcNull, 1))
	checkEqual(r, "Recv's status", must(mpi.Recv(r.ctx, comm, b, mpi.ProcNull, 1))(r), null)
	checkEqual(r, "Probe's status", must(mpi.Probe(r.ctx, comm, mpi.ProcNull, 1))(r), null)
	st, found, err := mpi.Iprobe(comm, mpi.ProcNull, 1)
	r.must(err)
	checkEqual(r, "Iprobe", found, true)
	checkEqual(r, "Iprobe's status", st, null)
	checkEqual(r, "Sendrecv's status", must(mpi.Sendrecv(r.ctx, comm, b, mpi.ProcNull, 1, b, mpi.ProcNull, 1))(r), null)
	for _, start := range []func(*mpi.Comm, []int32, int, int) (mpi.Request, error){
		mpi.Isend[int32], mpi.Issend[int32], mpi.Irsend[int32], mpi.Ibsend[int32], mpi.Irecv[int32],
	} {
		must(must(start(comm, b, mpi.ProcNull, 1))(r).Wait(r.ctx))(r)
	}
	q := must(mpi.RecvInit(comm, b, mpi.ProcNull, 1))(r)
	for range 2 {
		r.must(q.Start())
		checkEqual(r, "status", must(q.Wait(r.ctx))(r), null)
	}
	checkEqual(r, "buffer", b[0], 42)
}
