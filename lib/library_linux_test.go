package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/node/statetest"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "6") // parallel tests mostly wait
	code := statetest.Run(m)
	for _, f := range atEnd {
		f()
	}
	os.Exit(code)
}

// atEnd contains functions to call after all tests.
var atEnd []func()

// jobTime is the maximum time of a job.
var jobTime = time.Minute

func sortedLines(text string) string {
	lines := strings.SplitAfter(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "")
}

// cLibrary builds the C library once and returns its folder.
var cLibrary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "zrlmpi-library")
	if err != nil {
		return "", err
	}
	atEnd = append(atEnd, func() { _ = os.RemoveAll(dir) })
	if out, err := exec.Command("./build.sh", dir).CombinedOutput(); err != nil {
		return "", fmt.Errorf("lib/build.sh: %w\n%s", err, out)
	}
	build := exec.Command("go", "build", "-trimpath", "-o", filepath.Join(dir, "zrlctl"), "../cmd/zrlctl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // as in make build; with C threads it needs more address space
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("zrlctl: %w\n%s", err, out)
	}
	return dir, nil
})

func builtLibrary(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("building the C library takes a minute")
	}
	needs.Program(t, "the C library", "cc", "gcc")
	dir, err := cLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// compile compiles a C program or library in testdata for an ABI, standard or mpich.
func compile(t *testing.T, dir, abi, source string, more ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), abi+"-"+strings.TrimSuffix(source, ".c"))
	with := map[string]string{"standard": "-lmpi_abi", "mpich": "-lmpi"}[abi]
	args := append(more, "-Wall", "-I", filepath.Join(dir, "include", abi), "-o", out,
		filepath.Join("testdata", source), "-L", filepath.Join(dir, "lib"), with)
	if text, err := exec.Command("cc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// runWithLibrary runs a program that uses the library, and returns its output.
func runWithLibrary(t *testing.T, dir string, env []string, name string, args ...string) (string, error) {
	t.Helper()
	c := exec.CommandContext(t.Context(), name, args...)
	c.Env = append(append(os.Environ(), "LD_LIBRARY_PATH="+filepath.Join(dir, "lib")), env...)
	return output(t, dir, c)
}

// output returns the output of a command that may run jobs. A job that hangs is stopped, and the output then explains
// it.
func output(t *testing.T, dir string, c *exec.Cmd) (string, error) {
	t.Helper()
	c.WaitDelay = 5 * time.Second // child processes may hold the pipe open
	hangs := time.AfterFunc(jobTime, func() {
		ask := []string{"why"} // about the only job
		if filepath.Base(c.Path) == "zrlctl" {
			ask = append(ask, "--job", fmt.Sprintf("zrlctl_%d", c.Process.Pid))
		}
		why, err := exec.CommandContext(t.Context(), filepath.Join(dir, "zrlctl"), ask...).CombinedOutput()
		t.Errorf("%s %q has not ended after %v: %v\n%s", c.Path, c.Args[1:], jobTime, err, why)
		_ = c.Process.Signal(unix.SIGTERM)
		time.AfterFunc(c.WaitDelay, func() { _ = c.Process.Kill() })
	})
	defer hangs.Stop()
	out, err := c.CombinedOutput()
	return string(out), err
}

// TestLibrary checks that C and C++ programs can call all families of functions, in both ABIs, as a single process and
// as ranks of a job.
func TestLibrary(t *testing.T) {
	dir := builtLibrary(t)
	for _, abi := range []string{"standard", "mpich"} {
		for _, source := range []string{"calls.c", "errors.c", "families.c"} {
			runOnRanks(t, dir, source+", "+abi, compile(t, dir, abi, source))
		}
	}
	needs.Program(t, "a program in C++", "c++", "g++")
	for _, abi := range []string{"standard", "mpich"} {
		program := filepath.Join(t.TempDir(), "families")
		built := exec.Command(filepath.Join(dir, "zrlmpicxx"), "-abi="+abi, "-Wall", "-Werror", "-o", program, "-x",
			"c++", "testdata/families.c")
		if text, err := built.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		runOnRanks(t, dir, "families in C++, "+abi, program)
	}
}

// TestMixedABIs checks that a program with parts compiled for different ABIs cannot be a rank, and that the error has a
// remedy.
func TestMixedABIs(t *testing.T) {
	dir := builtLibrary(t)
	part := compile(t, dir, "standard", "small.c", "-shared", "-fPIC", "-Dmain=other")
	program := compile(t, dir, "mpich", "small.c", "-Wl,--no-as-needed", part)
	out, err := runWithLibrary(t, dir, nil, program)
	if err == nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "those in C with zrlmpicc -abi=mpich") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryFortran checks that Fortran programs can call families of functions in the module mpi_f08.
func TestLibraryFortran(t *testing.T) {
	needs.Program(t, "a Fortran program", "gfortran", "gfortran")
	dir := builtLibrary(t)
	program := filepath.Join(t.TempDir(), "families")
	if text, err := exec.Command(filepath.Join(dir, "zrlmpifort"), "-J", t.TempDir(), "-o", program,
		"testdata/families.f90").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	runOnRanks(t, dir, "families.f90", program)
}

// runOnRanks runs a program as 1 to 8 ranks, each of which prints "ok".
func runOnRanks(t *testing.T, dir, name, program string) {
	t.Helper()
	for ranks := 1; ranks <= 8; ranks++ {
		launch := []string{filepath.Join(dir, "zrlctl"), "run", "-n", fmt.Sprint(ranks), program}
		if ranks == 1 {
			launch = []string{program}
		}
		var want strings.Builder
		for rank := range ranks {
			fmt.Fprintf(&want, "rank %d of %d: ok\n", rank, ranks)
		}
		if out, err := runWithLibrary(t, dir, nil, launch[0], launch[1:]...); err != nil ||
			sortedLines(out) != want.String() {
			t.Errorf("%s, %d ranks: %v\n%s", name, ranks, err, out)
		}
	}
}

// TestLibraryHydra checks that MPICH's launcher can start a C program.
func TestLibraryHydra(t *testing.T) {
	hydra := needs.Program(t, "jobs of MPICH's launcher", "mpiexec.hydra", "mpich")
	dir := builtLibrary(t)
	out, err := runWithLibrary(t, dir, nil, hydra, "-n", "3", compile(t, dir, "mpich", "calls.c"))
	if err != nil || strings.Count(out, "of 3: ok\n") != 3 {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryFails checks that a fatal error ends the job and names the rank, the call and the reason.
func TestLibraryFails(t *testing.T) {
	dir := builtLibrary(t)
	out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "3",
		compile(t, dir, "standard", "calls.c"), "fail")
	for _, want := range []string{"zrlmpi: rank 1 of 3: MPI_Send failed", "there is no rank", "zrlctl: rank 1 ("} {
		if err == nil || !strings.Contains(out, want) {
			t.Errorf("%v, without %q:\n%s", err, want, out)
		}
	}
}

// TestLibraryAlone checks that processes of a launcher without PMI-1 fail, instead of each being its own world.
func TestLibraryAlone(t *testing.T) {
	dir := builtLibrary(t)
	out, err := runWithLibrary(t, dir, []string{"OMPI_COMM_WORLD_SIZE=4"}, compile(t, dir, "standard", "calls.c"))
	if err == nil || !strings.Contains(out, "OMPI_COMM_WORLD_SIZE is set") || !strings.Contains(out, "zrlctl run") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryProfiling checks that a profiling library can intercept the calls of a program.
func TestLibraryProfiling(t *testing.T) {
	dir := builtLibrary(t)
	count := compile(t, dir, "standard", "count.c", "-shared", "-fPIC")
	out, err := runWithLibrary(t, dir, []string{"LD_PRELOAD=" + count}, compile(t, dir, "standard", "calls.c"))
	if err != nil || !strings.Contains(out, "1 sends\n") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryProcess checks that a program can load the library with dlopen, start another process, and handle signals
// while it exchanges messages.
func TestLibraryProcess(t *testing.T) {
	dir := builtLibrary(t)
	for abi, library := range map[string]string{"standard": "libmpi_abi.so.1", "mpich": "libmpi.so.12"} {
		program := filepath.Join(t.TempDir(), abi)
		compile := exec.Command("cc", "-Wall", "-I", filepath.Join(dir, "include", abi), "-o", program,
			filepath.Join("testdata", "process.c"), "-ldl")
		if text, err := compile.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "2", program,
			filepath.Join(dir, "lib", library))
		if err != nil || sortedLines(out) != "rank 0 of 2: ok\nrank 1 of 2: ok\n" {
			t.Errorf("%s: %v\n%s", abi, err, out)
		}
	}
}

// TestNetpipe checks that a Debian program built for MPICH runs unchanged.
func TestNetpipe(t *testing.T) {
	netpipe := needs.Program(t, "a program that was built for MPICH", "NPmpich2", "netpipe-mpich2")
	dir := builtLibrary(t)
	out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "2", netpipe, "-u", "3000", "-n",
		"10", "-o", filepath.Join(t.TempDir(), "np.out"))
	if err != nil || !strings.Contains(out, " 2051 bytes ") {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestLibraryExamples checks that the library's compilers can compile the examples in C and Fortran, and that these run
// as ranks of a job.
func TestLibraryExamples(t *testing.T) {
	dir := builtLibrary(t)
	for _, x := range []struct {
		compiler, program, source, want string
	}{
		{"cc", "zrlmpicc", "ring.c", "65536 words: mean of a round"},
		{"gfortran", "zrlmpifort", "pi.f90", "pi is 3.1415926536, by 3 ranks"},
	} {
		t.Run(x.source, func(t *testing.T) {
			needs.Program(t, "an example of the C library", x.compiler,
				map[string]string{"cc": "gcc", "gfortran": "gfortran"}[x.compiler])
			program := filepath.Join(t.TempDir(), "example")
			compile := exec.Command(filepath.Join(dir, x.program), "-o", program,
				filepath.Join("../examples/c", x.source))
			if out, err := compile.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			out, err := runWithLibrary(t, dir, nil, filepath.Join(dir, "zrlctl"), "run", "-n", "3", program)
			if err != nil || !strings.Contains(out, x.want) {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestLibraryCMake checks that CMake's FindMPI finds the library by its compilers, for C, C++ and Fortran.
func TestLibraryCMake(t *testing.T) {
	cmake := needs.Program(t, "CMake's FindMPI", "cmake", "cmake")
	needs.Program(t, "CMake's FindMPI", "gfortran", "gfortran")
	dir := builtLibrary(t)
	build := t.TempDir()
	args := []string{"-S", "testdata/cmake", "-B", build}
	for language, compiler := range map[string]string{"C": "zrlmpicc", "CXX": "zrlmpicxx", "Fortran": "zrlmpifort"} {
		args = append(args, "-DMPI_"+language+"_COMPILER="+filepath.Join(dir, compiler))
	}
	for _, args := range [][]string{args, {"--build", build}} {
		if out, err := exec.Command(cmake, args...).CombinedOutput(); err != nil {
			t.Fatalf("cmake %q: %v\n%s", args, err, out)
		}
	}
	for program, want := range map[string]string{"rank_c": "rank 1\n", "rank_cxx": "rank 1\n", "pi": "by 2 ranks\n"} {
		out, err := output(t, dir,
			exec.CommandContext(t.Context(), filepath.Join(dir, "zrlctl"), "run", "-n", "2",
				filepath.Join(build, program)))
		if err != nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v\n%s", program, err, out)
		}
	}
}

// TestFortranPage runs the commands in docs/fortran.md and checks the documented results.
func TestFortranPage(t *testing.T) {
	needs.Program(t, "Fortran programs", "gfortran", "gfortran")
	dir := builtLibrary(t)
	page, err := os.ReadFile("../docs/fortran.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```\n") // every second block is text
	if len(blocks) != 9 || !strings.Contains(blocks[3], "zrlctl run") || !strings.Contains(blocks[7], "pkg-config") {
		t.Fatalf("%d blocks", len(blocks))
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for link, to := range map[string]string{"bin": dir, "examples": filepath.Join(root, "examples")} {
		if err := os.Symlink(to, filepath.Join(folder, link)); err != nil {
			t.Fatal(err)
		}
	}
	shell := exec.CommandContext(t.Context(), "sh", "-ec", blocks[3])
	shell.Dir = folder
	if out, err := output(t, dir, shell); err != nil || out != blocks[5] {
		t.Errorf("%v: %s, want\n%s", err, out, blocks[5])
	}
	needs.Program(t, "the page about Fortran", "pkg-config", "pkgconf")
	shell = exec.CommandContext(t.Context(), "sh", "-ec", blocks[7])
	shell.Dir = folder
	if out, err := output(t, dir, shell); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
