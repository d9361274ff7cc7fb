//go:build unix

package launch

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
)

// openMPI matches the names of Open MPI's libraries: the ones that programs are linked with, and the ones that these
// libraries load.
var openMPI = regexp.MustCompile(`^lib(mpi(_\w+)?\.so\.[4-9]\d|open-(pal|rte)\.so)`)

// anyMPI matches the names of libraries that contain MPI's functions for C programs.
var anyMPI = regexp.MustCompile(`^lib(mpi|mpich|mpi_abi|zrlmpi)[.-]`)

// errOpenMPI describes the failure of a rank whose program is linked with Open MPI.
var errOpenMPI = errors.New("its programs find the other ranks only through its own launcher, so that each " +
	"process is a " +
	"world of one rank: build the program with zrlmpicc, or start it with Open MPI's mpirun, without FPGAs")

// failIfOpenMPI makes the job fail if the given rank uses Open MPI and has not contacted the launcher. It does nothing
// in jobs with a single rank.
func (r *running) failIfOpenMPI(rank int) bool {
	if r.server.State(rank) != pmi.Started || len(r.procs) == 1 && r.ProcessRanks == nil {
		return false
	}
	p := r.procs[rank]
	libraries := linkedLibraries(p.cmd.Path)
	if !p.exited {
		libraries = append(libraries, loadedLibraries(p.cmd.Process.Pid)...)
	}
	i := slices.IndexFunc(libraries, func(path string) bool { return openMPI.MatchString(filepath.Base(path)) })
	if i < 0 {
		return false
	}
	r.recordFailure(r.failureOf(rank, 1,
		fmt.Errorf("has not contacted its launcher, and uses %s of Open MPI: %w", libraries[i], errOpenMPI)))
	return true
}

// reportLibrary reports the MPI library of a rank that has contacted the launcher, once for each program.
func (r *running) reportLibrary(rank int) {
	program := r.programOf(rank)
	if r.Verbose == nil || r.reported[program] {
		return
	}
	r.reported[program] = true
	found := slices.DeleteFunc(loadedLibraries(r.procs[rank].cmd.Process.Pid),
		func(path string) bool { return !anyMPI.MatchString(filepath.Base(path)) })
	text := fmt.Sprintf("rank %d (%s) uses no shared MPI library", r.rankOf(rank), program.Args[0])
	if len(found) > 0 {
		text = fmt.Sprintf("rank %d (%s) uses %s", r.rankOf(rank), program.Args[0], strings.Join(found, " and "))
	}
	r.Verbose(text)
}

// linkedLibraries returns the libraries named by an executable file.
func linkedLibraries(path string) []string {
	file, err := elf.Open(path)
	if err != nil {
		return nil // a script, or another format
	}
	defer file.Close()
	libraries, err := file.ImportedLibraries()
	if err != nil {
		return nil
	}
	return libraries
}

// loadedLibraries returns the paths of the shared libraries mapped by a process, or nil if the system does not list
// them.
func loadedLibraries(pid int) (paths []string) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(maps)) {
		path := strings.TrimSpace(line[strings.IndexByte(line, '/')+1:])
		if strings.Contains(line, " /") && strings.Contains(path, ".so") {
			paths = append(paths, "/"+path)
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
