package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/privatedir"
	"github.com/zrlmpi/zrlmpid/internal/rendezvous"
)

// jobsFolder is the name of the directory that contains all jobs of a user. It is located in the user's directory for
// sockets.
const jobsFolder = "jobs"

// Propose returns a path at which a directory for a new job can be created.
func Propose(launcher string) (path string, err error) {
	base, err := privatedir.Runtime()
	if err != nil {
		return "", err
	}
	defer base.Close()
	return filepath.Join(base.Path(), jobsFolder, newID(launcher)), nil
}

// Make creates a directory for a job, and removes the sockets of killed processes of other jobs. If the usual places
// are unusable because another user has taken them, Make creates the directory among temporary files, where tools do
// not find the job, and returns the reason as a warning. The caller must remove the directory.
func Make(launcher string) (path string, warning, err error) {
	Sweep()
	if path, warning = Propose(launcher); warning == nil {
		if warning = makeDirectory(path); warning == nil {
			return path, nil, nil
		}
	}
	errs := []error{warning}
	for _, temp := range []string{os.TempDir(), "/dev/shm"} {
		path = filepath.Join(temp, newID(launcher))
		err := makeDirectory(path)
		if err == nil {
			return path, fmt.Errorf("tools do not find this job: %w", warning), nil
		}
		errs = append(errs, err)
	}
	return "", nil, errors.Join(errs...)
}

func makeDirectory(path string) error {
	d, err := rendezvous.Make(path)
	if err != nil {
		return err
	}
	return d.Close()
}

// Remove removes the directory of a finished job, with its sockets.
func Remove(directory string) error { return os.RemoveAll(directory) }

// RemoveEmpty removes the directory of a job if it contains no sockets.
func RemoveEmpty(directory string) { _ = unix.Rmdir(directory) }

// Sweep removes sockets and directories of this user's jobs that killed processes have left behind.
func Sweep() {
	for _, place := range Places() {
		dir, err := rendezvous.Open(place)
		if err != nil {
			continue // missing or unsafe
		}
		ids, _ := dir.Names(fs.ModeDir)
		for _, id := range ids {
			if j, err := rendezvous.Open(filepath.Join(dir.Path(), id)); err == nil {
				if j.Sweep() {
					RemoveEmpty(j.Path())
				}
				j.Close()
			}
		}
		dir.Close()
	}
}

// Places returns the directories that may contain this user's jobs.
func Places() []string {
	places := privatedir.RuntimePaths()
	for i := range places {
		places[i] = filepath.Join(places[i], jobsFolder)
	}
	return places
}

// Find returns this user's jobs on this host, with the ranks that listen for requests. The error is an *UnsafeError if
// Find sees no job but had to skip unsafe directories, which may contain jobs.
func Find() ([]Job, error) {
	Sweep()
	var found []Job
	var unsafe []error
	for _, place := range Places() {
		dir, err := rendezvous.Open(place)
		switch {
		case err == nil:
		case errors.Is(err, privatedir.ErrUnsafe):
			unsafe = append(unsafe, err)
			continue
		default:
			continue // missing
		}
		jobs, err := jobsIn(dir, rendezvous.Open)
		dir.Close()
		if err != nil {
			return nil, err
		}
		found = append(found, jobs...)
	}
	if unsafe != nil && found == nil {
		return nil, &UnsafeError{unsafe}
	}
	return found, nil
}

// FindOf returns the jobs of another user. It verifies only that their processes belong to that user. name is the name
// of a job or of its directory.
func FindOf(uid int, name string) ([]Job, error) {
	open := func(path string) (*rendezvous.Dir, error) { return rendezvous.OpenOf(path, uid) }
	var found []Job
	var errs []error
	for _, place := range privatedir.RuntimePathsOf(uid) {
		dir, err := open(filepath.Join(place, jobsFolder))
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				errs = append(errs, err)
			}
			continue
		}
		jobs, err := jobsIn(dir, func(path string) (*rendezvous.Dir, error) {
			if !matches(path, name) {
				return nil, fs.ErrNotExist
			}
			return open(path)
		})
		dir.Close()
		if err != nil {
			errs = append(errs, err)
		}
		found = append(found, jobs...)
	}
	if len(found) == 0 {
		return nil, errors.Join(errs...)
	}
	return found, nil
}

// matches reports whether a directory belongs to a job of the given name.
func matches(directory, name string) bool {
	of, ok := NameOf(directory)
	return ok && (of == name || filepath.Base(directory) == name)
}

// Matches reports whether name is the name of the job or of its directory.
func (j *Job) Matches(name string) bool { return matches(j.Directory, name) }

// jobsIn returns the jobs in a directory that have ranks.
func jobsIn(dir *rendezvous.Dir, open func(path string) (*rendezvous.Dir, error)) ([]Job, error) {
	ids, err := dir.Names(fs.ModeDir)
	if err != nil {
		return nil, err
	}
	var found []Job
	for _, id := range ids {
		name, ok := NameOf(id)
		if !ok {
			continue
		}
		j, err := open(filepath.Join(dir.Path(), id))
		if err != nil {
			continue // the job is over
		}
		if ranks, near := ranksIn(j); len(ranks) > 0 {
			found = append(found, Job{Name: name, UID: j.UID(), Directory: j.Path(), Ranks: ranks, SameNetwork: near})
		}
		j.Close()
	}
	return found, nil
}

// Ranks returns those ranks of a job whose processes listen on this host.
func Ranks(directory string) []int {
	d, err := rendezvous.Open(directory)
	if err != nil {
		return nil
	}
	defer d.Close()
	ranks, _ := ranksIn(d)
	return ranks
}

// ranksIn returns the ranks that listen in the directory of a job. near reports whether one of them is in this
// process's network namespace.
func ranksIn(dir *rendezvous.Dir) (ranks []int, near bool) {
	names, _ := dir.Names(fs.ModeSocket)
	for _, name := range names {
		rank, ok := rankOf(name)
		if !ok {
			continue
		}
		if p, listens := dir.Listens(name, unix.SOCK_STREAM); listens {
			ranks = append(ranks, rank)
			near = near || isSameNetwork(p.PID)
		}
	}
	slices.Sort(ranks)
	return ranks, near
}

// isSameNetwork reports whether a process is in the same network namespace as this one.
func isSameNetwork(pid int) bool {
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		return false
	}
	other, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	return err == nil && own == other
}
