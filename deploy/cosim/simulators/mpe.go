package simulators

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/deploy/cosim"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// Environment variables that hold the paths of upstream's sources, because these are not available as a package. The
// paths lead to checkouts of github.com/cloudFPGA/ZRLMPI and github.com/cloudFPGA/cFDK, and to the folder include of
// github.com/Xilinx/HLS_arbitrary_Precision_Types.
const (
	sourceEnv  = "ZRLMPI_UPSTREAM_SOURCE"
	cfdkEnv    = "ZRLMPI_UPSTREAM_CFDK"
	headersEnv = "ZRLMPI_HLS_INCLUDE"
)

// Files in upstream's sources, and a line in one of them, that tests edit before they build an MPE.
const (
	MPEFolder     = "ZRLMPI/LIB/HW/hls/mpe2/src"
	wrapperFolder = "ZRLMPI/LIB/HW/hls/mpi_wrapperv2/src"
	WrapperFile   = wrapperFolder + "/ZRLMPI_temp.cpp"
	CallLine      = "/* ZRLMPI_APP_MAIN_CALL -- ADD app_main_call here */"
)

// Edit describes a change to one of upstream's source files.
type Edit struct {
	File string
	Change
}

func (e Edit) apply(t testing.TB, dir string) {
	t.Helper()
	path := filepath.Join(dir, e.File)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, e.Change.apply(t, e.File, text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// EchoEdit makes upstream's MPI wrapper call a role that passes messages from one rank to another. The program takes
// the lengths of the messages, in words, as command-line arguments.
var EchoEdit = Edit{WrapperFile, Change{CallLine, "app_main(soMPIif, siMPIFeB, soMPI_data, siMPI_data);"}}

// TimeoutEdit returns an edit that adapts the MPE's timeouts to a clock that makes the given number of cycles in 100
// ms.
func TimeoutEdit(cycles int) Edit {
	return Edit{MPEFolder + "/zrlmpi_common.hpp",
		Change{"ZRLMPI_PROTOCOL_TIMEOUT_CYCLES 15625000", fmt.Sprint("ZRLMPI_PROTOCOL_TIMEOUT_CYCLES ", cycles)}}
}

// BuildMPE builds a program in folder mpe together with upstream's sources of the MPE and the MPI wrapper, to
// which it applies edits first. It returns the path of the program. It skips the test if the sources are missing.
func BuildMPE(t testing.TB, program string, edits ...Edit) string {
	t.Helper()
	const what = "upstream's MPE"
	needs.Program(t, what, "g++", "g++")
	var from [3]string
	for i, name := range []string{sourceEnv, cfdkEnv, headersEnv} {
		if from[i] = os.Getenv(name); from[i] == "" {
			t.Skipf("NOT TESTED against upstream's MPE: set %s, %s and %s to checkouts of "+
				"github.com/cloudFPGA/ZRLMPI and cloudFPGA/cFDK, and to include of "+
				"github.com/Xilinx/HLS_arbitrary_Precision_Types", sourceEnv, cfdkEnv, headersEnv)
		}
	}
	buildMu.Lock()
	defer buildMu.Unlock()
	key := fmt.Sprint(program, edits)
	if path := builtPaths[key]; path != "" {
		return path
	}
	dir := newFolder(t)
	// The MPE includes files of cFDK by a path outside the MPE's repository.
	for to, source := range map[string]string{"ZRLMPI/LIB": filepath.Join(from[0], "LIB"),
		"cFDK/SRA/LIB/hls": filepath.Join(from[1], "SRA/LIB/hls")} {
		if err := os.CopyFS(filepath.Join(dir, to), os.DirFS(source)); err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range edits {
		e.apply(t, dir)
	}
	project := filepath.Join(dir, "project")
	if _, err := cosim.Write(project, "hls", "/nowhere"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(project, "ap_utils.h"), nil, 0o666); err != nil { // not public
		t.Fatal(err)
	}
	own := filepath.Join(dir, "own")
	if err := os.CopyFS(own, programFiles); err != nil {
		t.Fatal(err)
	}
	own = filepath.Join(own, "mpe")
	compile := func(args ...string) {
		t.Helper()
		all := append([]string{"-O2", "-w", "-DNDEBUG", "-I", filepath.Join(project, "cosim")}, args...)
		if out, err := exec.Command("g++", all...).CombinedOutput(); err != nil {
			t.Fatalf("g++ %s: %v\n%s", strings.Join(all, " "), err, out)
		}
	}
	object := func(name string) string { return filepath.Join(dir, name+".o") }
	cpp := func(name, file string, more ...string) {
		t.Helper()
		compile(append([]string{
			"-std=c++14", "-include", filepath.Join(own, "quiet.h"), "-I", project, "-I", own, "-I", from[2],
			"-I", filepath.Join(dir, MPEFolder), "-I", filepath.Join(dir, wrapperFolder), "-c", "-o", object(name),
			file,
		}, more...)...)
	}
	cpp("mpe", filepath.Join(dir, MPEFolder, "mpe.cpp"))
	cpp("common", filepath.Join(dir, MPEFolder, "zrlmpi_common.cpp"))
	cpp("wrapper", filepath.Join(dir, WrapperFile), "-DAxis=WrapperAxis")
	cpp("app", filepath.Join(own, "app_hw.cpp"), "-DAxis=WrapperAxis")
	cpp("program", filepath.Join(own, program+".cpp"))
	path := filepath.Join(dir, program)
	compile("-o", path, object("mpe"), object("common"), object("wrapper"), object("app"), object("program"), "-x",
		"c++", filepath.Join(project, "cosim/zrlmpi_cosim.c"))
	builtPaths[key] = path
	return path
}
