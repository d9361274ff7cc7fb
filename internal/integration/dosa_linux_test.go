package integration_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// dosaEnv names a checkout of DOSA, whose host programs use upstream's library.
const dosaEnv = "ZRLMPI_UPSTREAM_DOSA"

// TestDOSA runs DOSA's template of a host program, a library loaded by Python, with a pipeline of five ranks that pass
// messages on.
func TestDOSA(t *testing.T) {
	for _, pair := range apiPairs(t) {
		t.Run(fmt.Sprintf("host %s, others %s", pair[0].name, pair[1].name), func(t *testing.T) {
			host, others := dosaPrograms(t, pair)
			if out := runRanks(t, dosaRanks, host, others, asCPU, dosaRounds); !strings.Contains(out, dosaResult) {
				t.Error(out)
			}
		})
	}
}

// TestDOSAWithLosses checks that losses have no effect with our library on both sides. With upstream's library on one
// side, a loss may cause an error or make upstream's programs wait forever, but never a wrong result.
func TestDOSAWithLosses(t *testing.T) {
	const runs = 10
	for i, pair := range apiPairs(t) {
		t.Run(fmt.Sprintf("host %s, others %s", pair[0].name, pair[1].name), func(t *testing.T) {
			host, others := dosaPrograms(t, pair)
			lossy := lossyNetwork(t)
			host, others = lossy(host), lossy(others)
			mixed := i > 0
			env := asSoftware
			if mixed {
				env = asCPU
			}
			delivered := 0
			for range runs {
				ctx, stop := context.WithTimeout(t.Context(), lossTimeout)
				out, err := runLines(ctx, lossyLines(t, dosaRanks), host, others, env, dosaRounds)
				stop()
				right := strings.Contains(out, dosaResult)
				switch {
				case right:
					delivered++
				case strings.Contains(out, "inferred"):
					t.Errorf("a wrong result: %s", out)
				}
				if err != nil && !mixed {
					t.Error(err)
				}
			}
			t.Logf("%d of %d runs had a result", delivered, runs)
			if delivered < runs && !mixed {
				t.Errorf("%d of %d runs had a result", delivered, runs)
			}
		})
	}
}

// dosaRanks is the number of ranks, dosaRounds the number of rounds of the other ranks, and dosaResult the output of
// the host.
const (
	dosaRanks  = 6
	dosaRounds = "3x6-1"
	dosaResult = "inferred [1, 101, 101, 101, 101]"
)

// dosaPrograms builds DOSA's host program and the program of the other ranks. DOSA's makefile builds the former:
// unchanged with upstream's library, and with two variables set for ours.
func dosaPrograms(t *testing.T, pair [2]upstreamAPI) (host, others string) {
	t.Helper()
	checkout := os.Getenv(dosaEnv)
	if checkout == "" {
		t.Skipf("NOT TESTED against DOSA: set %s to a checkout of github.com/cloudFPGA/DOSA", dosaEnv)
	}
	python := needs.Program(t, "DOSA's host program", "python3", "python3")
	dir := t.TempDir()
	copyFiles(t, filepath.Join(checkout, "gradatim/backend/codeGen/templates/zrlmpi_sw/*e*"), dir)
	args := []string{"-C", dir, "lib", "CPPFLAGS=-D_XOPEN_SOURCE=700 -DWRAPPER_TEST"}
	if pair[0].link == nil {
		args = append(args, "SOURCES=dosa_infer.cpp", "CC="+strings.Join(pair[0].compile, " "))
	} else {
		copyFiles(t, filepath.Join(os.Getenv(sourceEnv), "LIB/SW/*.?pp"), filepath.Join(dir, "LIB"))
	}
	if out, err := exec.CommandContext(t.Context(), "make", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	host = filepath.Join(dir, "host")
	if err := os.WriteFile(host, []byte("#!"+python+"\n"+dosaHost), 0o700); err != nil {
		t.Fatal(err)
	}
	return host, pair[1].build(t, "testdata/ring.cpp")
}

// copyFiles copies the files that match a pattern into a folder.
func copyFiles(t *testing.T, pattern, to string) {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err == nil {
		err = os.MkdirAll(to, 0o700)
	}
	for _, file := range files {
		text, e := os.ReadFile(file)
		if e == nil {
			e = os.WriteFile(filepath.Join(to, filepath.Base(file)), text, 0o600)
		}
		err = errors.Join(err, e)
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %d files, %v", pattern, len(files), err)
	}
}

// dosaHost calls the library like DOSA's dosa_root.py, for 3 frames of 22 bytes, of which the last one stays in the
// pipeline. All results are written to one buffer, as in the template's test.
const dosaHost = `
import ctypes, os, sys
library = ctypes.CDLL(os.path.join(os.path.dirname(os.path.abspath(__file__)), "dosa_infer_pass.so"))
args = (ctypes.c_char_p * len(sys.argv))(*[bytes(a, "ascii") for a in sys.argv])
library.init(len(sys.argv), args)
frames = bytes(range(1, 23)) + bytes([101] * 22) + bytes(range(1, 23)) + bytes(2)
result = ctypes.create_string_buffer(64)
first = []
if library.infer_batch(frames, 3, result, 2) != 0:
    sys.exit("infer_batch failed")
library.cleanup()
print("inferred", [frames[0], frames[22]] + list(result.raw[0:3]))
`
