package mpi_test

import (
	"context"
	"errors"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/caching"
	"github.com/zrlmpi/zrlmpid/mpi/job"
)

// TestAttributes checks that Dup copies attributes, and that Free deletes them unless a callback returns an error.
func TestAttributes(t *testing.T) {
	refused := errors.New("refused")
	err := job.Run(t.Context(), 2, func(ctx context.Context, world *mpi.Comm) error {
		deleted, refuse := 0, false
		counted := mpi.NewKeyval(func(c *mpi.Comm, _ *mpi.Keyval, v any) (any, bool, error) {
			if c != world {
				return nil, true, refused
			}
			return v.(int) + 1, true, nil
		}, func(*mpi.Comm, *mpi.Keyval, any) error {
			if refuse {
				return refused
			}
			deleted++
			return nil
		})
		same, none := mpi.NewKeyval(caching.KeepValue[*mpi.Comm], nil), mpi.NewKeyval(nil, nil)
		if err := errors.Join(world.SetAttr(counted, 1), world.SetAttr(same, "text"), world.SetAttr(none, "other"),
			world.SetAttr(counted, 2)); err != nil {
			return err
		}
		twin, err := world.Dup(ctx)
		if err != nil {
			return err
		}
		for _, x := range []struct {
			key  *mpi.Keyval
			want any
		}{{counted, 3}, {same, "text"}, {none, nil}} {
			if v, ok, err := twin.Attr(x.key); v != x.want || ok != (x.want != nil) || err != nil {
				t.Errorf("the attribute is %v, %v, %v, not %v", v, ok, err, x.want)
			}
		}
		if third, err := twin.Dup(ctx); third != nil || !errors.Is(err, refused) || !errors.Is(err, mpi.ErrOther) {
			t.Errorf("Dup: %v, %v", third, err)
		}
		refuse = true
		for name, err := range map[string]error{"Free": twin.Free(), "DeleteAttr": twin.DeleteAttr(counted),
			"SetAttr": twin.SetAttr(counted, 5)} {
			if !errors.Is(err, refused) || !errors.Is(err, mpi.ErrOther) {
				t.Errorf("%s: %v", name, err)
			}
		}
		refuse = false
		if err := errors.Join(twin.Free(), world.DeleteAttr(counted), world.DeleteAttr(counted),
			counted.Free()); err != nil {
			t.Error(err)
		}
		if deleted != 3 {
			t.Errorf("%d deletions", deleted)
		}
		if _, ok, err := world.Attr(counted); ok || err != nil {
			t.Errorf("there is an attribute, %v", err)
		}
		_, _, of := world.Attr(nil)
		for name, err := range map[string]error{"SetAttr": world.SetAttr(counted, 1),
			"SetAttr of nil": world.SetAttr(nil, 1), "DeleteAttr": world.DeleteAttr(nil), "Attr": of} {
			if mpi.ClassOf(err) != mpi.ErrKeyval {
				t.Errorf("%s: %v", name, err)
			}
		}
		var no *mpi.Comm
		_, _, of = no.Attr(same)
		for name, err := range map[string]error{"freed": twin.SetAttr(same, 1), "SetAttr": no.SetAttr(same, 1),
			"DeleteAttr": no.DeleteAttr(same), "Attr": of} {
			if mpi.ClassOf(err) != mpi.ErrComm {
				t.Errorf("%s: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if s := mpi.ErrKeyval.Error(); s != "MPI_ERR_KEYVAL: invalid keyval" || mpi.Class(30).String() != "class(30)" {
		t.Error(s, mpi.Class(30))
	}
}
