package cosim

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// echo.sh does not mistake an old log, which contains "ready", for the log of the zrlmpid that it starts.
func TestEchoRemovesEarlierLog(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := projectFiles.ReadFile("project/echo.sh")
	if err != nil {
		t.Fatal(err)
	}
	write("echo.sh", string(script))
	write("zrlmpid", "#!/bin/sh\necho ready\nexec sleep 60\n")
	write("zrlctl", "#!/bin/sh\n")
	write("earlier", "ready\n")
	if err := os.Symlink("earlier", filepath.Join(dir, "zrlmpid.log")); err != nil { // a link to the old log
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "echo.sh")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Readlink(filepath.Join(dir, "zrlmpid.log")); err == nil {
		t.Error("the log is from the earlier run")
	}
}

// The size of waves is limited. When a file reaches the limit, it is renamed and a new file begins.
func TestWavesAreBounded(t *testing.T) {
	compiler := needs.Program(t, "waves of roles in simulation", "g++", "g++")
	dir := t.TempDir()
	for name, text := range map[string]string{
		"Vrole.h": "struct VerilatedFstC;\nstruct VerilatedContext { void commandArgs(int, char **); void " +
			"traceEverOn(bool); bool gotFinish(); };\nstruct Vrole { explicit Vrole(VerilatedContext *) {} void " +
			"trace(VerilatedFstC *, int) {} void eval() {} void final() {} };\n",
		"verilated.h": "",
		"verilated_fst_c.h": "#include <cstdio>\n#include <string>\nstruct VerilatedFstC {\n\tFILE *f;\n\tvoid " +
			"open(const char *name) { f = fopen(name, \"w\"); }\n" +
			"\tvoid flush() { fputs(std::string(300 << 10, 'x').c_str(), f); fflush(f); }\n\tvoid close() { " +
			"fclose(f); }\n\tvoid dump(unsigned long) {}\n};\n",
		"main.cpp": "#include \"verilator_main.h\"\nint main() {\n\tVrole role(nullptr);\n\tWaves " +
			"waves(role);\n\tfor (int i = 1; i <= 10; i++) waves.keep(i);\n\twaves.trace.close();\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	if out, err := exec.Command(compiler, "-DVM_TRACE=1", "-DVM_TRACE_FST=1", "-I", dir, "-I", "shim", "-o", program,
		filepath.Join(dir, "main.cpp")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	cmd := exec.Command(program)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "ZRLMPI_COSIM_WAVES_MB=1")
	out, err := cmd.Output()
	const want = "waves: waves.fst, the last 1 MiB at least\n" +
		"waves: waves.fst begins anew after cycle 4, and the cycles before are in waves.fst.old\n" +
		"waves: waves.fst begins anew after cycle 8, and the cycles before are in waves.fst.old\n"
	if err != nil || string(out) != want {
		t.Errorf("%v, %s", err, out)
	}
	for name, want := range map[string]int64{"waves.fst": 2 * 300 << 10, "waves.fst.old": 4 * 300 << 10} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() != want {
			t.Errorf("%s: %v, want %d bytes: %+v", name, err, want, info)
		}
	}
}

func TestWrite(t *testing.T) {
	for _, lang := range Languages {
		dir := filepath.Join(t.TempDir(), "a", lang)
		written, err := Write(dir, lang, "/opt/bin")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{languages[lang].role, "Makefile", "cluster.yaml", "README.md", "cosim/targets.mk",
			"cosim/echo.sh", "cosim/zrlmpi_cosim.c", "cosim/zrlmpi_cosim.h"} {
			text, err := os.ReadFile(filepath.Join(dir, name))
			if err != nil || regexp.MustCompile("@[A-Z]+@").Match(text) {
				t.Errorf("%s: %s: %v\n%s", lang, name, err, text)
			}
			if !slices.Contains(written, filepath.Join(dir, name)) {
				t.Errorf("%s: %s is not among %v", lang, name, written)
			}
		}
		cfg, err := config.Load(filepath.Join(dir, "cluster.yaml"))
		want := config.KernelRTL
		if strings.HasSuffix(lang, "-mpe") {
			want = config.KernelRTLNet
		}
		if err != nil || cfg.Ranks[1].Kernel.Name != want || cfg.Ranks[1].Kernel.Simulation.StallPercent != 20 ||
			cfg.Ranks[1].MaxKernelWords() != 8192 {
			t.Errorf("%s: %v, %+v", lang, err, cfg)
		}
		makefile, err := os.ReadFile(filepath.Join(dir, "Makefile"))
		if err != nil || strings.Contains(string(makefile), "\nalone:") == strings.HasSuffix(lang, "-mpe") {
			t.Errorf("%s: %v, a Makefile with or without alone:\n%s", lang, err, makefile)
		}
		if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte("mine"), 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(filepath.Join(dir, "README.md")); err != nil {
			t.Fatal(err)
		}
		_, err = Write(dir, lang, "/opt/bin")
		if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), "name another folder") {
			t.Errorf("%s, once more: %v", lang, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "README.md")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: files are written next to existing ones", lang)
		}
	}
	if _, err := Write(t.TempDir(), "ada", ""); err == nil ||
		!strings.Contains(err.Error(), "verilog, vhdl, hls, verilog-mpe, vhdl-mpe") {
		t.Errorf("another language: %v", err)
	}
}
