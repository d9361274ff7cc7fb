// Package simulators builds FPGA simulators for tests: for the roles that zrlctl cosim new writes, and for upstream's
// MPE.
package simulators

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/zrlmpi/zrlmpid/deploy/cosim"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

//go:embed mpe
var programFiles embed.FS

var (
	buildMu    sync.Mutex
	tempDir    string // directory of all simulators, each of which is built once per process
	builtPaths = map[string]string{}
)

// RemoveAll deletes all simulators that this process has built.
func RemoveAll() {
	buildMu.Lock()
	defer buildMu.Unlock()
	os.RemoveAll(tempDir)
	tempDir = ""
	clear(builtPaths)
}

// newFolder returns a path at which no folder exists yet.
func newFolder(t testing.TB) string {
	t.Helper()
	if tempDir == "" {
		var err error
		if tempDir, err = os.MkdirTemp("", "simulators"); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(tempDir, fmt.Sprint(len(builtPaths)))
}

// Change is an old and a new text. Applied to a source file, it replaces the old text by the new one. If the old text
// is empty, the new text replaces the whole file.
type Change [2]string

func (c Change) apply(t testing.TB, name string, text []byte) []byte {
	t.Helper()
	if c[0] == "" {
		return []byte(c[1])
	}
	if n := strings.Count(string(text), c[0]); n != 1 {
		t.Fatalf("%s has %q %d times", name, c[0], n)
	}
	return []byte(strings.Replace(string(text), c[0], c[1], 1))
}

// BuildRole builds the role of a project that zrlctl cosim new has written, after it applies changes to the role's
// source. It returns the path of the simulator. It skips the test if a required program is missing.
func BuildRole(t testing.TB, language string, changes ...Change) string {
	t.Helper()
	const what = "roles in simulation"
	needs.Program(t, what, "make", "make")
	source := "role.cpp"
	switch language {
	case "verilog", "verilog-mpe":
		needs.Program(t, what, "verilator", "verilator")
		needs.Program(t, what, "g++", "g++")
		source = "role.v"
	case "vhdl", "vhdl-mpe":
		version, err := exec.Command(needs.Program(t, what, "ghdl", "ghdl-llvm"), "--version").Output()
		if text := string(version); err != nil || !strings.Contains(text, "llvm") && !strings.Contains(text, "GCC") {
			needs.Missing(t, what, "ghdl has a back end that links no C (apt-get install ghdl-llvm)")
		}
		needs.Program(t, what, "cc", "gcc")
		source = "role.vhdl"
	case "hls":
		needs.Program(t, what, "g++", "g++")
	}
	buildMu.Lock()
	defer buildMu.Unlock()
	key := fmt.Sprint(language, changes)
	if role := builtPaths[key]; role != "" {
		return role
	}
	dir := newFolder(t)
	if _, err := cosim.Write(dir, language, "/nowhere"); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, source))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		text = c.apply(t, source, text)
	}
	if err := os.WriteFile(filepath.Join(dir, source), text, 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", dir, "role").CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	builtPaths[key] = filepath.Join(dir, "role")
	return builtPaths[key]
}
