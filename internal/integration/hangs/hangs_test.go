package hangs_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/mpi"
)

type program func(ctx context.Context, world *mpi.Comm) error

// sends and receives are programs of one call with the given number of words.
func sends(to, tag, words int) program {
	return func(ctx context.Context, world *mpi.Comm) error {
		return mpi.Send(ctx, world, make([]int32, words), to, tag)
	}
}

func receives(from, tag, words int) program {
	return func(ctx context.Context, world *mpi.Comm) error {
		_, err := mpi.Recv(ctx, world, make([]int32, words), from, tag)
		return err
	}
}

func allreduces(words int) program {
	return func(ctx context.Context, world *mpi.Comm) error {
		return mpi.Allreduce(ctx, world, make([]int32, words), make([]int32, words), mpi.Sum)
	}
}

func reduces(root, words int) program {
	return func(ctx context.Context, world *mpi.Comm) error {
		return mpi.Reduce(ctx, world, make([]int32, words), make([]int32, words), mpi.Sum, root)
	}
}

func inOrder(calls ...program) program {
	return func(ctx context.Context, world *mpi.Comm) error {
		for _, call := range calls {
			if err := call(ctx, world); err != nil {
				return err
			}
		}
		return nil
	}
}

func computes(ctx context.Context, _ *mpi.Comm) error {
	<-ctx.Done()
	return nil
}

const (
	extendedUDP = "profile: extended, transport: udp"
	extendedTCP = "profile: extended, transport: tcp"
	extendedSHM = "profile: extended"
	cloudFPGA   = "profile: cloudfpga, deadlines: {clear: 1m, data: 1m, ack: 1m}"
	long        = 100_000
)

// TestFullCredit diagnoses a hang of a rank that has used up the credit of a peer that never receives.
func TestFullCredit(t *testing.T) {
	c := newCluster(t)
	text := strings.Replace(c.text(extendedUDP, "1, run: host", "2, run: host"), "ranks:",
		"limits: {unexpected: 1000}\nranks:", 1)
	for rank := range 2 {
		c.start(here{}, text, rank)
	}
	c.run(0, func(ctx context.Context, world *mpi.Comm) error {
		for {
			if err := sends(1, 0, 1)(ctx, world); err != nil {
				return err
			}
		}
	})
	c.run(1, computes)
	w := want{diagnosis.CreditExhausted, 1, 0, "Send", "look why rank 1 does not receive", "its program posts none"}
	c.explained(w)
	c.fromEach(w)
}

// TestPrograms diagnoses hangs of programs whose ranks all run.
func TestPrograms(t *testing.T) {
	for _, tt := range []struct {
		name     string
		defaults string
		ranks    []program
		want     want
	}{
		{"tag mismatch", extendedUDP, []program{sends(1, 7, 4), receives(0, 5, 4)},
			want{diagnosis.TagMismatch, 1, 0, "Recv", "use the same tag",
				"rank 0 has sent with tag 7, and rank 1 receives with tag 5"}},
		{"tag mismatch, rendezvous", extendedTCP, []program{sends(1, 7, long), receives(0, 5, long)},
			want{diagnosis.TagMismatch, 1, 0, "", "use the same tag",
				"rank 0 has sent with tag 7, and rank 1 receives with tag 5"}},
		{"INT against FLOAT", cloudFPGA, []program{sends(1, 0, 4), func(ctx context.Context, world *mpi.Comm) error {
			_, err := mpi.Recv(ctx, world, make([]float32, 4), 0, 0)
			return err
		}}, want{diagnosis.DatatypeMismatch, 1, 0, "", "the same datatype", "INT and FLOAT do not match"}},
		{"cycle of two", extendedUDP, []program{receives(1, 0, 4), receives(0, 0, 4)},
			want{diagnosis.WaitCycle, 0, anyPeer, "Recv", "have one rank send first", "cycle 0 → 1 → 0"}},
		{"cycle of two sends", extendedSHM, []program{sends(1, 0, long), sends(0, 0, long)},
			want{diagnosis.WaitCycle, 0, anyPeer, "Send", "have one rank receive first", "cycle 0 → 1 → 0"}},
		{"cycle of three", cloudFPGA, []program{sends(1, 0, 4), sends(2, 0, 4), sends(0, 0, 4)},
			want{diagnosis.WaitCycle, 0, anyPeer, "Send", "have one rank receive first", "cycle 0 → 1 → 2 → 0"}},
		{"cycle of five", extendedTCP,
			[]program{receives(1, 0, 4), receives(2, 0, 4), receives(3, 0, 4), receives(4, 0, 4), receives(0, 0, 4)},
			want{diagnosis.WaitCycle, 0, anyPeer, "Recv", "have one rank send first", "cycle 0 → 1 → 2 → 3 → 4 → 0"}},
		{"calls in different order", extendedUDP,
			[]program{inOrder(allreduces(1), reduces(0, 4), allreduces(4)),
				inOrder(allreduces(1), allreduces(4), reduces(0, 4)),
				inOrder(allreduces(1), reduces(0, 4), allreduces(4))},
			want{diagnosis.CallOrder, 1, anyPeer, "", "the same order",
				"rank 1 has called Allreduce, and ranks 0 and 2 have called Reduce"}},
		{"root mismatch", extendedSHM,
			[]program{inOrder(allreduces(1), reduces(0, 4)), inOrder(allreduces(1), reduces(1, 4)),
				inOrder(allreduces(1), reduces(0, 4))},
			want{diagnosis.RootMismatch, 1, anyPeer, "Reduce", "the same root",
				"rank 1 has called Reduce with root 1, and ranks 0 and 2 have called Reduce with root 0"}},
		{"count mismatch", extendedUDP,
			[]program{inOrder(allreduces(1), allreduces(4)), inOrder(allreduces(1), allreduces(2)),
				inOrder(allreduces(1), allreduces(4))},
			want{diagnosis.CountMismatch, 1, anyPeer, "Allreduce", "the same count",
				"rank 1 has called Allreduce of 8 bytes, and ranks 0 and 2 have called Allreduce of 16 bytes"}},
		{"fewer sends than receives", extendedUDP,
			[]program{inOrder(sends(1, 0, 4), sends(1, 0, 4), computes),
				inOrder(receives(0, 0, 4), receives(0, 0, 4), receives(0, 0, 4))},
			want{diagnosis.ProgramComputes, 0, 1, "Recv", "gdb", "has not sent the message"}},
		{"program computes", extendedUDP,
			[]program{inOrder(allreduces(1), allreduces(1)), inOrder(allreduces(1), computes),
				inOrder(allreduces(1), allreduces(1))},
			want{diagnosis.ProgramComputes, 1, anyPeer, "Allreduce", "gdb", "has not called Allreduce"}},
		{"program computes, point to point", cloudFPGA, []program{sends(1, 0, 4), computes},
			want{diagnosis.ProgramComputes, 1, 0, "Send", "gdb", "CLEAR_TO_SEND is missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := newCluster(t)
			entries := make([]string, len(tt.ranks))
			for i := range entries {
				entries[i] = fmt.Sprintf("%d, run: host", i+1)
			}
			text := c.text(tt.defaults, entries...)
			for rank := range tt.ranks {
				c.start(here{}, text, rank)
			}
			for rank, program := range tt.ranks {
				c.run(rank, program)
			}
			c.explained(tt.want)
			if tt.defaults != cloudFPGA { // it cannot ask other ranks
				c.fromEach(tt.want)
			}
		})
	}
}
