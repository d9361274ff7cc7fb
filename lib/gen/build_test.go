package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// build runs lib/build.sh and returns the folder. libzrlmpi is one that prints the loaded ABI and its calls, and whose calls succeed:
// what is tested are the shims, names and paths.
func build(t *testing.T) string {
	t.Helper()
	needs.Program(t, "build of the C library", "cc", "gcc")
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	core := file("core.c", coreOfTests(tables(t).table))
	standIn := file("go", `#!/bin/sh
[ "$1" = build ] || exec go "$@"
while [ "$1" != -o ]; do shift; done
exec cc -shared -fPIC -Wall -Wextra -Werror -I lib/c -Wl,-soname,libzrlmpi.so -o "$2" `+core+"\n")
	t.Setenv("GO", standIn)
	t.Setenv("VERSION", "v1.2.3")
	command(t, "../build.sh", filepath.Join(dir, "bin"))
	return filepath.Join(dir, "bin")
}

// coreOfTests prints calls with their names. Initialized answers yes, Wtime half a second.
func coreOfTests(table []function) string {
	var b strings.Builder
	b.WriteString("#include \"zrlmpi.h\"\n#include <stdio.h>\n#include <string.h>\n\nstatic const char *names[] = {\n")
	for _, f := range table {
		fmt.Fprintf(&b, "    %q,\n", f.name)
	}
	b.WriteString(`};

void zrl_load(int abi) { printf("abi %d\n", abi); }

int zrl_call(int call, zrl_arg *a) {
    const char *name = names[call];
    printf("%s\n", name);
    if (strcmp(name, "Initialized") == 0)
        *(int *)a[0].p = 1;
    if (strcmp(name, "Wtime") == 0)
        a[0].d = 0.5;
    return 0;
}
`)
	return b.String()
}

// Programs are built by the wrappers and pkg-config, for both ABIs, and run without LD_LIBRARY_PATH.
func TestBuild(t *testing.T) {
	bin := build(t)
	program := filepath.Join(t.TempDir(), "program.c")
	if err := os.WriteFile(program, []byte(`#include <mpi.h>

int main(int argc, char **argv) {
    int initialized = 0;
    MPI_Init(&argc, &argv);
    MPI_Initialized(&initialized);
    return MPI_Wtime() == 0.5 && initialized ? MPI_Finalize() : 1;
}
`), 0o644); err != nil {
		t.Fatal(err)
	}
	pkgConfig := func(module string) []string {
		path := needs.Program(t, "files for pkg-config", "pkg-config", "pkgconf")
		t.Setenv("PKG_CONFIG_PATH", filepath.Join(bin, "lib/pkgconfig"))
		return append([]string{"cc", program}, strings.Fields(command(t, path, "--cflags", "--libs", module))...)
	}
	cc, cxx := filepath.Join(bin, "zrlmpicc"), filepath.Join(bin, "zrlmpicxx")
	for _, c := range []struct {
		name, abi string
		command   []string
	}{
		{"zrlmpicc", "2", []string{cc, program}},
		{"zrlmpicc, mpich", "1", []string{cc, "-abi=mpich", program}},
		{"zrlmpicxx", "2", []string{cxx, "-x", "c++", program}},
		{"zrlmpicc -show", "2", strings.Fields(command(t, cc, "-show", program))},
		{"pkg-config zrlmpi", "2", pkgConfig("zrlmpi")},
		{"pkg-config zrlmpi-mpich", "1", pkgConfig("zrlmpi-mpich")},
	} {
		t.Run(c.name, func(t *testing.T) {
			into := filepath.Join(t.TempDir(), "program")
			command(t, c.command[0], append(c.command[1:], "-o", into)...)
			if got, want := command(t, into), "abi "+c.abi+"\nInit\nInitialized\nWtime\nFinalize\n"; got != want {
				t.Errorf("it printed %q, want %q", got, want)
			}
		})
	}
	if got := command(t, cc, "-link_info"); !strings.Contains(got, "-lmpi_abi") {
		t.Errorf("-link_info: %s", got)
	}
	if got := command(t, cc, "-show", "-c", program); strings.Contains(got, "-lmpi") {
		t.Errorf("libraries where nothing is linked: %s", got)
	}
}
