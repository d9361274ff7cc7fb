package mpitest

import (
	"context"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
)

// finalize checks that messages sent before Finalize still arrive.
func finalize(t *testing.T, world WorldFunc) {
	ctx, stop := context.WithTimeout(t.Context(), testTimeout)
	defer stop()
	var comms [2]*mpi.Comm
	for i, dev := range world(t, 2) {
		c, err := mpi.New(dev)
		if err != nil {
			t.Fatal(err)
		}
		comms[i] = c
	}
	request, err := mpi.Irecv(comms[0], make([]int32, 1000), 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := comms[1].AttachBuffer(4000); err != nil {
		t.Fatal(err)
	}
	if err := mpi.Send(ctx, comms[1], pattern(1000, 1), 0, 0); err != nil {
		t.Fatal(err)
	}
	b := make([]int32, 1000)
	late, err := mpi.Irecv(comms[0], b, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := mpi.Bsend(comms[1], pattern(1000, 2), 0, 1); err != nil {
		t.Fatal(err)
	}
	if err := comms[1].Finalize(ctx); err != nil {
		t.Error(err)
	}
	for _, q := range []mpi.Request{request, late} {
		if _, err := q.Wait(ctx); err != nil {
			t.Error(err)
		}
	}
	if !slices.Equal(b, pattern(1000, 2)) {
		t.Error("the buffered message is not whole")
	}
	if err := comms[1].Finalize(ctx); mpi.ClassOf(err) != mpi.ErrOther {
		t.Errorf("the second Finalize says %v", err)
	}
	if err := mpi.Send(ctx, comms[1], b, 0, 0); mpi.ClassOf(err) != mpi.ErrOther {
		t.Errorf("Send after Finalize says %v", err)
	}
	request, err = mpi.Irecv(comms[0], b, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := comms[0].Finalize(ctx); err != nil {
		t.Error(err)
	}
	if _, err := request.Wait(ctx); mpi.ClassOf(err) != mpi.ErrOther {
		t.Errorf("a request that Finalize ends says %v", err)
	}
}
