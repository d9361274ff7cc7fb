package mpi

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/race"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// TestAllocations checks that no call allocates memory once the objects of earlier calls can be reused.
func TestAllocations(t *testing.T) {
	d := &nullDevice{size: 2, status: mpe.Status{Peer: 1}}
	c := newComm(t, d)
	ctx := t.Context()
	b := make([]float32, 16)
	if err := c.AttachBuffer(1 << 10); err != nil {
		t.Fatal(err)
	}
	persistent, err := SendInit(c, b, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	partitioned, err := c.PsendInit(Typed(b, 16, TypeOf[float32]()), 2, 1, 3)
	if err != nil {
		t.Fatal(err)
	}
	every, err := datatype.Vector(2, 1, 2, TypeOf[float32]())
	if err != nil {
		t.Fatal(err)
	}
	two, err := datatype.Vector(2, 1, 2, every)
	if err != nil {
		t.Fatal(err)
	}
	const n = 4
	counts, displs := []int{4, 4}, []int{4, 0}
	requests, statuses, indices := make([]Request, n), make([]Status, n), make([]int, 0, n)
	// many starts a request in every element of requests.
	many := func() error {
		for i := range requests {
			start := Irecv[float32]
			if i%2 == 1 {
				start = Isend[float32]
			}
			r, err := start(c, b, 1, 3)
			if err != nil {
				return err
			}
			requests[i] = r
		}
		return nil
	}
	for name, f := range map[string]func() error{
		"Send": func() error { return Send(ctx, c, b, 1, 3) },
		"Partitioned": func() error {
			r, err := partitioned.Start()
			if err == nil {
				err = partitioned.Pready(0, 1)
			}
			if err == nil {
				_, err = r.Wait(ctx)
			}
			return err
		},
		"Ssend":           func() error { return Ssend(ctx, c, b, 1, 3) },
		"Bsend":           func() error { return Bsend(c, b, 1, 3) },
		"Recv":            func() error { _, err := Recv(ctx, c, b, 1, 3); return err },
		"Probe":           func() error { _, err := Probe(ctx, c, 1, 3); return err },
		"Iprobe":          func() error { _, _, err := Iprobe(c, AnySource, AnyTag); return err },
		"Sendrecv":        func() error { _, err := Sendrecv(ctx, c, b, 1, 3, b, 1, 3); return err },
		"SendrecvReplace": func() error { _, err := SendrecvReplace(ctx, c, b, 1, 3, 1, 3); return err },
		"Barrier":         func() error { return Barrier(ctx, c) },
		"Bcast":           func() error { return Bcast(ctx, c, b, 0) },
		"Allreduce":       func() error { return Allreduce(ctx, c, b, b, Sum) },
		"Reduce":          func() error { return Reduce(ctx, c, b[:8], b[8:], Max, 0) },
		"Alltoallv": func() error {
			return Alltoallv(ctx, c, b[:8], counts, nil, b[8:], counts, displs)
		},
		"Comm.Send": func() error { return c.Send(ctx, Typed(b, 2, every), 1, 3) },
		"Comm.Recv": func() error { _, err := c.Recv(ctx, Typed(b, 1, two), 1, 3); return err },
		"Comm.Irecv": func() error {
			r, err := c.Irecv(Typed(b, 2, every), 1, 3)
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		},
		"Iallgather": func() error {
			r, err := Iallgather(c, b[:8], b)
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		},
		"Start": func() error {
			if err := persistent.Start(); err != nil {
				return err
			}
			_, err := persistent.Wait(ctx)
			return err
		},
		"Ibsend": func() error {
			r, err := Ibsend(c, b, 1, 3)
			if err != nil {
				return err
			}
			_, err = r.Wait(ctx)
			return err
		},
		"Test": func() error {
			r, err := Isend(c, b, 1, 3)
			if err != nil {
				return err
			}
			_, _, err = r.Test()
			return err
		},
		"Free": func() error {
			r, err := Isend(c, b, 1, 3)
			if err != nil {
				return err
			}
			return r.Free()
		},
		"Waitall": func() error {
			if err := many(); err != nil {
				return err
			}
			return Waitall(ctx, requests, statuses)
		},
		"Waitany": func() error {
			if err := many(); err != nil {
				return err
			}
			for i := range requests {
				d.later = n - i // so that Waitany has to wait
				if _, _, err := Waitany(ctx, requests); err != nil {
					return err
				}
			}
			return nil
		},
		"Waitsome": func() error {
			if err := many(); err != nil {
				return err
			}
			d.later = n
			_, err := Waitsome(ctx, requests, indices, statuses)
			return err
		},
	} {
		if got := testing.AllocsPerRun(100, func() {
			if err := f(); err != nil {
				t.Fatal(err)
			}
		}); got != 0 && !race.Enabled {
			t.Errorf("%s allocates %v times", name, got)
		}
	}
}

// BenchmarkCalls measures the overhead of the library, on a device that completes every operation immediately.
func BenchmarkCalls(b *testing.B) {
	c := newComm(b, &nullDevice{size: 2, status: mpe.Status{Peer: 1}})
	ctx := b.Context()
	buf := make([]float32, 16)
	var requests [2]Request
	for _, call := range []struct {
		name string
		f    func() error
	}{
		{"Send", func() error { return Send(ctx, c, buf, 1, 3) }},
		{"Recv", func() error { _, err := Recv(ctx, c, buf, 1, 3); return err }},
		{"Sendrecv", func() error { _, err := Sendrecv(ctx, c, buf, 1, 3, buf, 1, 3); return err }},
		{"Probe", func() error { _, err := Probe(ctx, c, 1, 3); return err }},
		{"Barrier", func() error { return Barrier(ctx, c) }},
		{"Bcast", func() error { return Bcast(ctx, c, buf, 0) }},
		{"Allreduce", func() error { return Allreduce(ctx, c, buf, buf, Sum) }},
		{"Isend, Irecv and Waitall", func() (err error) {
			if requests[0], err = Isend(c, buf, 1, 3); err != nil {
				return err
			}
			if requests[1], err = Irecv(c, buf, 1, 3); err != nil {
				return err
			}
			return Waitall(ctx, requests[:], nil)
		}},
	} {
		b.Run(call.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call.f(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
