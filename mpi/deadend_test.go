package mpi_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/mpitest"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/memnet"
)

// halfDeaf returns ranks of which rank 0 treats the others as FPGAs. The network drops all continuation datagrams to
// rank 1.
func halfDeaf(t *testing.T, n int) []mpe.Device {
	net := memnet.New(n)
	net.SetHook(func(_, to int, b []byte) []time.Duration {
		if _, defect := protocol.CloudFPGA.Parse(b); to == 1 && !defect.OK() {
			return nil
		}
		return []time.Duration{0}
	})
	devices := make([]mpe.Device, n)
	for rank := range n {
		rules := handshake.SoftwarePeer()
		if rank == 0 {
			rules = handshake.FPGAPeer(1)
		}
		tr, timing := net.Transport(rank), handshake.DefaultTiming(rules)
		timing.AckDeadline = 200 * time.Millisecond
		cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, n)}
		for other := range n {
			cfg.Peers[other] = mpe.Peer{
				Transport: tr,
				Handshake: handshake.Config{Peer: rules, Shape: protocol.CPUShape(), Timing: timing, MaxWords: 1 << 20},
			}
		}
		e, err := mpe.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ended, stop := context.WithCancel(context.Background())
			stop()
			_ = e.Close(ended)
		})
		devices[rank] = e
	}
	return devices
}

// TestDeadEnds checks that calls waiting for an FPGA in a dead end return, with the original cause, both in the program
// of the rank and in an attached program.
func TestDeadEnds(t *testing.T) {
	const n = 1000
	out, in := make([]int32, n), make([]int32, n)
	const first, later = "did not acknowledge 1000 words",
		"in a dead end since an earlier operation failed: rank 1 did not acknowledge 1000 words"
	check := func(t *testing.T, what string, err error, text string) {
		t.Helper()
		if err == nil || !errors.Is(err, handshake.ErrPartial) || !strings.Contains(err.Error(), text) ||
			errors.Is(err, handshake.ErrDeadEnd) != (text == later) {
			t.Errorf("%s: %v, want %q", what, err, text)
		}
	}
	type program struct {
		ranks int
		run   func(t *testing.T, ctx context.Context, c *mpi.Comm)
	}
	programs := map[string]program{
		"Sendrecv": {2, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			_, err := mpi.Sendrecv(ctx, c, out, 1, 0, in, 1, 0)
			check(t, "Sendrecv", err, first)
			_, err = mpi.Sendrecv(ctx, c, out, 1, 0, in, 1, 0)
			check(t, "Sendrecv again", err, later)
		}},
		"Sendrecv from another rank": {3, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			_, err := mpi.Sendrecv(ctx, c, out, 1, 0, in, 2, 0)
			check(t, "Sendrecv", err, first)
		}},
		"SendrecvReplace": {3, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			_, err := mpi.SendrecvReplace(ctx, c, out, 1, 0, 2, 0)
			check(t, "SendrecvReplace", err, first)
		}},
		"Waitall": {2, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			r, err1 := mpi.Irecv(c, in, 1, 0)
			s, err2 := mpi.Isend(c, out, 1, 0)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			st := make([]mpi.Status, 2)
			err := mpi.Waitall(ctx, []mpi.Request{r, s}, st)
			if mpi.ClassOf(err) != mpi.ErrInStatus || !strings.Contains(err.Error(), "number 1, says: mpi: Isend") {
				t.Errorf("Waitall: %v", err)
			}
			check(t, "Irecv", st[0].Err, later)
			check(t, "Isend", st[1].Err, first)
		}},
		"Waitall behind another rank": {3, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			r, err1 := mpi.Irecv(c, in, 2, 0)
			s, err2 := mpi.Isend(c, out, 1, 0)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			st := make([]mpi.Status, 2)
			err := mpi.Waitall(ctx, []mpi.Request{r, s}, st)
			if !strings.Contains(err.Error(), "number 1, says: mpi: Isend") ||
				mpi.ClassOf(st[0].Err) != mpi.ErrPending {
				t.Errorf("Waitall: %v; Irecv: %v", err, st[0].Err)
			}
			check(t, "Isend", st[1].Err, first)
			if !r.Active() || s.Active() {
				t.Errorf("Irecv is active: %v, Isend: %v", r.Active(), s.Active())
			}
			if err := r.Cancel(); err != nil {
				t.Error(err)
			}
			if st, err := r.Wait(ctx); err != nil || !st.Cancelled {
				t.Errorf("Irecv: %+v, %v", st, err)
			}
		}},
		"persistent requests": {2, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			r, err1 := mpi.RecvInit(c, in, 1, 0)
			s, err2 := mpi.SendInit(c, out, 1, 0)
			if err := errors.Join(err1, err2); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{first, later} {
				st, list := make([]mpi.Status, 2), []mpi.Request{r, s}
				if err := mpi.Startall(list); err != nil {
					t.Fatal(err)
				}
				_ = mpi.Waitall(ctx, list, st)
				check(t, "RecvInit", st[0].Err, later)
				check(t, "SendInit", st[1].Err, want)
			}
		}},
		"wildcards": {2, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			r, err := mpi.Irecv(c, in, mpi.AnySource, 0)
			if err != nil {
				t.Fatal(err)
			}
			check(t, "Send", mpi.Send(ctx, c, out, 1, 0), first)
			_, err = r.Wait(ctx)
			check(t, "Irecv", err, later)
			_, err = mpi.Recv(ctx, c, in, mpi.AnySource, mpi.AnyTag)
			check(t, "Recv", err, later)
		}},
		"collective calls": {2, func(t *testing.T, ctx context.Context, c *mpi.Comm) {
			check(t, "Bcast", mpi.Bcast(ctx, c, out, 0), first)
			check(t, "Reduce", mpi.Reduce(ctx, c, out, in, mpi.Sum, 0), later)
		}},
	}
	for name, p := range programs {
		for how, world := range map[string]mpitest.WorldFunc{"engine": halfDeaf, "attached": attached(halfDeaf, 100)} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				devices := world(t, p.ranks)
				if _, err := devices[1].Start(mpe.Operation{Kind: mpe.OpRecv, Peer: 0,
					Buf: make([]byte, 4*n)}); err != nil {
					t.Fatal(err)
				}
				c, err := mpi.New(devices[0])
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				p.run(t, ctx, c)
			})
		}
	}
}
