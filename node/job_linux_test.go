package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/jobs"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
	"github.com/zrlmpi/zrlmpid/transport/shm"
)

// named is an exchange of a job with the given name.
type named struct {
	exchange
	name string
}

func (x named) Name() string { return x.name }

// joinAll joins a job and returns its ranks.
func joinAll(ctx context.Context, t *testing.T, name string, size int, env func(rank int)) (devices []mpe.Device) {
	t.Helper()
	j := newJob(size)
	devices, errs := make([]mpe.Device, size), make([]error, size)
	var joined sync.WaitGroup
	for rank := range size {
		if env != nil {
			env(rank)
		}
		joined.Go(func() { devices[rank], errs[rank] = Join(ctx, named{exchange{j, rank}, name}, "") })
	}
	joined.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return devices
}

// directoryOf returns the common directory of the ranks.
func directoryOf(t *testing.T, devices []mpe.Device) string {
	t.Helper()
	var directories []string
	for _, d := range devices {
		directories = append(directories, d.(*jobDevice).rank.Directory)
	}
	if slices.Sort(directories); len(slices.Compact(directories)) != 1 {
		t.Fatalf("the ranks have the directories %q", directories)
	}
	return directories[0]
}

// TestJobDirectory checks that ranks use the directory of their launcher or agree on one where tools find them, that
// jobs with the same name do not mix, and that ranks remove the directory if no launcher does.
func TestJobDirectory(t *testing.T) {
	t.Setenv(EnvAddress, "127.0.0.0/8")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	handed, warning, err := jobs.Make("same")
	if err != nil || warning != nil {
		t.Fatal(warning, err)
	}
	var used []string
	for _, env := range []string{"", filepath.Join(filepath.Dir(handed),
		"other"+strings.TrimPrefix(filepath.Base(handed), "same")), handed} {
		t.Setenv(jobs.EnvDirectory, env)
		const n = 3
		devices := joinAll(ctx, t, "same", n, nil)
		directory := directoryOf(t, devices)
		if used = append(used, directory); (directory == env) != (env == handed) {
			t.Errorf("with %q the ranks are in %s", env, directory)
		}
		if got := jobs.Ranks(directory); !slices.Equal(got, []int{0, 1, 2}) {
			t.Errorf("tools find the ranks %v", got)
		}
		var greeted sync.WaitGroup
		for _, d := range devices {
			greeted.Go(func() { greet(ctx, t, d, protocol.Extended) })
		}
		greeted.Wait()
		if err := closeAll(devices); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(directory); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is left: %v", directory, err)
		}
	}
	if slices.Sort(used); len(slices.Compact(used)) != 3 {
		t.Errorf("jobs of one name have the directories %q", used)
	}
}

// TestNoJobDirectory checks that ranks that would share memory report why they have no directory, and that a rank
// without one uses the directory of another rank on its host.
func TestNoJobDirectory(t *testing.T) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	reason := errors.New("/tmp/zrlmpi-7 belongs to user 8")
	own, err := freeAddresses(2)
	if err != nil {
		t.Fatal(err)
	}
	for _, directory := range []string{"", filepath.Join(t.TempDir(), "job")} {
		j := newJob(2)
		devices, errs := make([]mpe.Device, 2), make([]error, 2)
		var joined sync.WaitGroup
		for rank := range 2 {
			p := location{addr: own[rank], host: "x", directoryErr: reason}
			if rank == 1 {
				p.directory = directory
			}
			joined.Go(func() { devices[rank], errs[rank] = join(ctx, exchange{j, rank}, p, nil) })
		}
		joined.Wait()
		for rank, err := range errs {
			_, refused := errors.AsType[*shm.ListenError](err)
			if refused != (directory == "") || refused && !errors.Is(err, reason) || !refused && err != nil {
				t.Errorf("rank %d, directory %q: %v", rank, directory, err)
			}
			if err == nil {
				_ = devices[rank].Close(ctx)
			}
		}
	}
}

// TestPlaceText checks that the text of a place preserves any directory name, and omits one that is too long.
func TestPlaceText(t *testing.T) {
	addrs, err := freeAddresses(1)
	if err != nil {
		t.Fatal(err)
	}
	p := location{addr: addrs[0], host: "x", processorList: "0", directory: "/run/a b;c=d%/ü"}
	if got, err := parseLocation(p.String()); err != nil || got != p || strings.ContainsAny(p.String(), " =") {
		t.Errorf("%q is %+v, %v", p.String(), got, err)
	}
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	t.Setenv(jobs.EnvDirectory, "/"+strings.Repeat("long/", 300)+"x."+strings.Repeat("A", 26))
	own := localLocation(named{exchange{newJob(1), 0}, "x"}, addrs[0])
	if own.directory != "" || own.directoryErr == nil || len(own.String()) > maxLocationLen {
		t.Errorf("%+v", own)
	}
}
