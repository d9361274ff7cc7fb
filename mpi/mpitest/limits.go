package mpitest

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
)

// Limits tests package mpi on wires with limits, in a world of three ranks. The wires between rank 0 and the
// other ranks are limited. Limits asks the devices for the limits, and expects at least one.
func Limits(t *testing.T, world WorldFunc) {
	var info mpe.PeerInfo
	t.Run("world", func(t *testing.T) {
		var err error
		if info, err = world(t, 3)[0].Peer(1); err != nil {
			t.Fatal(err)
		}
	})
	tests := limits(info)
	if len(tests) == 0 {
		t.Errorf("the wire between rank 0 and 1 has no limits: %+v", info)
	}
	runTests(t, world, tests)
}

// limits returns the tests that apply to a wire with the given limits.
func limits(wire mpe.PeerInfo) (tests []test) {
	for _, c := range []struct {
		limited bool
		name    string
		run     func(r *rank)
	}{
		{wire.Words, "words", wholeWords},
		{wire.NoTags, "no tags", noTags},
		{wire.SmallTags, "small tags", smallTags},
		{wire.NoComms, "no communicators", noComms},
		{wire.NoLength, "no length", noLength},
		{wire.NoEmpty, "no empty messages", noEmpty},
		{wire.NoTags, "datatypes", datatypes},
		{wire.NoComms, "collectives", limitedCollectives},
		{wire.NoComms, "words of collectives", collectiveWords},
		{wire.NoComms, "one collective at a time", oneAtATime},
	} {
		if c.limited {
			tests = append(tests, test{c.name, 3, c.run})
		}
	}
	return tests
}

// checkError checks the class of an error, and that the error's text contains all of the given words.
func (r *rank) checkError(err error, want mpi.Class, words ...string) {
	r.t.Helper()
	r.checkClass(err, want)
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			r.fatalf("%q does not say %q", err, w)
		}
	}
}

// limitTag is a tag that can be used on every wire, whether or not the wire supports tags.
const limitTag = 3

// checkNothingSent checks that no rejected message has been sent: it sends a message of its own, which must be the next
// one to arrive.
func (r *rank) checkNothingSent() {
	r.t.Helper()
	switch r.Rank() {
	case 0:
		r.must(mpi.Send(r.ctx, r.Comm, []int32{11}, 1, limitTag))
	case 1:
		b := []int32{0}
		must(mpi.Recv(r.ctx, r.Comm, b, 0, limitTag))(r)
		checkEqual(r, "number", b[0], 11)
	}
}

func wholeWords(r *rank) {
	if r.Rank() == 0 {
		for _, n := range []int{1, 3} {
			r.checkError(mpi.Send(r.ctx, r.Comm, make([]int16, n), 1, limitTag), mpi.ErrCount, "32-bit words")
			_, err := mpi.Isend(r.Comm, make([]uint8, n), 1, limitTag)
			r.checkClass(err, mpi.ErrCount)
			_, err = mpi.Recv(r.ctx, r.Comm, make([]int8, n), 1, limitTag)
			r.checkClass(err, mpi.ErrCount)
			_, err = mpi.Sendrecv(r.ctx, r.Comm, make([]int16, n), 1, limitTag, []int32{0}, 1, limitTag)
			r.checkClass(err, mpi.ErrCount)
		}
		r.must(mpi.Send(r.ctx, r.Comm, []int16{1, 2}, 1, limitTag))
	}
	if r.Rank() == 1 {
		b := make([]int16, 4)
		st := must(mpi.Recv(r.ctx, r.Comm, b, 0, limitTag))(r)
		checkEqual(r, "count", mpi.Count[int16](st), 2)
		checkEqual(r, "count of int64", mpi.Count[int64](st), mpi.Undefined)
		checkEqual(r, "number", b[1], 2)
	}
	r.checkNothingSent()
}

// noTags checks that messages match in order even if their tags differ, and that the status contains the tag that the
// receive asked for.
func noTags(r *rank) {
	switch r.Rank() {
	case 0:
		for i := range 4 {
			r.must(mpi.Send(r.ctx, r.Comm, []int32{int32(i)}, 1, 100+i))
		}
		_, err := mpi.Recv(r.ctx, r.Comm, []int32{0}, mpi.AnySource, 1)
		r.checkError(err, mpi.ErrTag, "any tag")
	case 1:
		must(mpi.Probe(r.ctx, r.Comm, 0, 5))(r)
		for i, tag := range []int{7, 0, mpi.AnyTag, 7} {
			b := []int32{-1}
			st := must(mpi.Recv(r.ctx, r.Comm, b, 0, tag))(r)
			checkEqual(r, "number", int(b[0]), i)
			checkEqual(r, "tag", st.Tag, max(tag, 0))
		}
	}
	r.checkNothingSent()
}

func smallTags(r *rank) {
	if r.Rank() == 0 {
		r.checkError(mpi.Send(r.ctx, r.Comm, []int32{0}, 1, 256), mpi.ErrTag, "0 to 255")
		_, err := mpi.Irecv(r.Comm, []int32{0}, 1, 256)
		r.checkClass(err, mpi.ErrTag)
		_, _, err = mpi.Iprobe(r.Comm, 1, 256)
		r.checkClass(err, mpi.ErrTag)
		r.must(mpi.Send(r.ctx, r.Comm, []int32{7}, 1, 255))
	}
	if r.Rank() == 1 {
		st := must(mpi.Recv(r.ctx, r.Comm, []int32{0}, 0, mpi.AnyTag))(r)
		checkEqual(r, "tag", st.Tag, 255)
	}
	r.checkNothingSent()
}

// noComms checks that the world works, and that ranks whose wires support communicators can create and use one.
func noComms(r *rank) {
	_, err := r.Dup(r.ctx)
	r.checkError(err, mpi.ErrComm, "Create", "profile")
	_, err = r.Split(r.ctx, 0, 0)
	r.checkError(err, mpi.ErrComm, "Create")
	if r.Rank() < 2 {
		_, err = r.Create(r.ctx, must(r.Group().Incl(0, 1))(r), 0)
		r.checkError(err, mpi.ErrComm, "Create")
	}
	if info := must(r.PeerInfo(3 - max(r.Rank(), 1)))(r); r.Rank() > 0 && !info.NoComms {
		c := must(r.Create(r.ctx, must(r.Group().Excl(0))(r), 0))(r)
		checkEqual(r, "rank", c.Rank(), r.Rank()-1)
		b := []int32{0}
		must(mpi.Sendrecv(r.ctx, c, []int32{int32(r.Rank())}, 1-c.Rank(), 0, b, mpi.AnySource, 0))(r)
		checkEqual(r, "number", int(b[0]), 3-r.Rank())
	}
	alone := must(r.Create(r.ctx, must(r.Group().Incl(r.Rank()))(r), 0))(r)
	checkEqual(r, "size", alone.Size(), 1)
	r.checkNothingSent()
}

func noLength(r *rank) {
	if r.Rank() == 0 {
		r.must(mpi.Send(r.ctx, r.Comm, pattern(10, 1), 1, limitTag))
	}
	if r.Rank() == 1 {
		st := must(mpi.Probe(r.ctx, r.Comm, 0, limitTag))(r)
		checkEqual(r, "count", mpi.Count[int32](st), mpi.Undefined)
		checkEqual(r, "bytes", st.Bytes, mpi.Undefined)
		b := make([]int32, 20)
		st = must(mpi.Recv(r.ctx, r.Comm, b, 0, limitTag))(r)
		checkEqual(r, "count", mpi.Count[int32](st), 10)
	}
	r.checkNothingSent()
}

func noEmpty(r *rank) {
	if r.Rank() == 0 {
		r.checkError(mpi.Send(r.ctx, r.Comm, []int32{}, 1, limitTag), mpi.ErrCount, "empty")
		_, err := mpi.SendInit(r.Comm, []int32(nil), 1, limitTag)
		r.checkClass(err, mpi.ErrCount)
	}
	r.checkNothingSent()
}

// datatypes checks that receives into byte slices accept both floats and ints, and that receives into slices of other
// types accept only their own kind.
func datatypes(r *rank) {
	switch r.Rank() {
	case 0:
		r.must(mpi.Send(r.ctx, r.Comm, []float32{1}, 1, 0))
		r.must(mpi.Send(r.ctx, r.Comm, []int32{1}, 1, 0))
		r.must(mpi.Send(r.ctx, r.Comm, []celsius{36.5}, 1, 0))
		r.must(mpi.Send(r.ctx, r.Comm, []float64{2.5}, 1, 0))
	case 1:
		b := make([]uint8, 4)
		must(mpi.Recv(r.ctx, r.Comm, b, 0, 0))(r)
		checkEqual(r, "bytes of a float", [4]uint8(b), [4]uint8{0, 0, 0x80, 0x3f})
		must(mpi.Recv(r.ctx, r.Comm, b, 0, 0))(r)
		checkEqual(r, "bytes of an int", [4]uint8(b), [4]uint8{1})
		f := []float32{0}
		must(mpi.Recv(r.ctx, r.Comm, f, 0, 0))(r)
		checkEqual(r, "float", f[0], 36.5)
		d := []float64{0}
		must(mpi.Recv(r.ctx, r.Comm, d, 0, 0))(r)
		checkEqual(r, "double", d[0], 2.5)
	}
	r.checkNothingSent()
}
