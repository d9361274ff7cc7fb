package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestArguments calls every function of every ABI under both names, with a different value for each argument, and
// compares the received call and values in C. This detects any error in the packing of arguments. Functions that return
// constant answers make no call.
func TestArguments(t *testing.T) {
	cc := needs.Program(t, "arguments of the C library's functions", "cc", "gcc")
	src := tables(t)
	dir := t.TempDir()
	writeC(t, dir, src)
	for _, a := range src.abis {
		check := filepath.Join(dir, string(a.name)+"_check.c")
		text, want := argumentsCheck(a, src.table)
		if err := os.WriteFile(check, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		program := filepath.Join(dir, string(a.name))
		if err := os.Mkdir(program+".d", 0o755); err != nil {
			t.Fatal(err)
		}
		command(t, cc, "-Wall", "-Wextra", "-Werror", "-I../c", "-I"+program, "-o", program+".d/check", check,
			program+".c")
		if got := command(t, program+".d/check"); got != fmt.Sprintf("%d calls\n", want) {
			t.Errorf("%s: want %d calls, and got\n%s", a.name, want, got)
		}
	}
}

// TestHeadersInCPlusPlus checks that the headers are valid in C++.
func TestHeadersInCPlusPlus(t *testing.T) {
	cxx := needs.Program(t, "mpi.h in C++", "c++", "g++")
	src, dir := tables(t), t.TempDir()
	writeC(t, dir, src)
	for _, a := range src.abis {
		command(t, cxx, "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "-x", "c++",
			filepath.Join(dir, string(a.name), "mpi.h"))
	}
}

func writeC(t *testing.T, dir string, src *source) {
	t.Helper()
	files, err := src.cFiles()
	if err != nil {
		t.Fatal(err)
	}
	if err := write(dir, files); err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out)
}

// argumentsCheck returns a program that contains its own libzrlmpi, and the number of its calls.
func argumentsCheck(a *abi, table []function) (text string, calls int) {
	var b strings.Builder
	fmt.Fprintf(&b, `#include "mpi.h"
#include "zrlmpi.h"
#include <stdio.h>
#include <string.h>

static int loaded, call, failures, calls;
static zrl_arg args[%[1]d];

void *zrl_load(int abi) { loaded = abi; return 0; }

int zrl_call(int number, zrl_arg *a) {
    call = number;
    memcpy(args, a, sizeof args);
    memset(a, 0, sizeof args);
    a[0].i = number + (INT64_C(1) << 32);
    return 100000 + number;
}

/* Values of integer and pointer arguments: more than 32 bits differ from 0, if the type has that many. */
#define INTEGER(type, n) ((type)(-(INT64_C(1) << 40) - (n)))
#define POINTER(type, n) ((type)(INT64_C(0x7f0000000000) + (n)))

static void check(int ok, const char *name, const char *what) {
    if (ok)
        return;
    printf("%%s: %%s is wrong\n", name, what);
    failures++;
}

int main(void) {
    check(loaded == ZRL_%[2]s, "zrl_load", "ABI");
`, maxArgs, strings.ToUpper(string(a.name)))
	n := 0
	for number, f := range table {
		if !f.isInABI(a.name) || inlineResults[f.name] != "" {
			continue
		}
		for _, prefix := range []string{"MPI_", "PMPI_"} {
			name := prefix + f.name
			var values, checks []string
			for i, p := range f.params {
				n++
				if p.name == "" {
					values = append(values, `"more"`)
					continue
				}
				value, member := a.value(p.typ, n)
				values = append(values, value)
				if member == pointer {
					checks = append(checks, fmt.Sprintf("args[%d].p == (void *)%s", i, value))
				} else {
					checks = append(checks, fmt.Sprintf("args[%d].%s == %s", i, member, value))
				}
			}
			result := "100000 + call"
			if f.result != "" {
				base, _ := a.cType(f.result)
				switch cl, _ := a.classOf(typeSpec{base: f.result}); cl {
				case integer:
					result = fmt.Sprintf("(%s)(call + (INT64_C(1) << 32))", base)
				case pointer:
					result = fmt.Sprintf("(%s)(call + (INT64_C(1) << 32))", base)
				case double:
					result = "((zrl_arg){.i = call + (INT64_C(1) << 32)}).d"
				}
			}
			fmt.Fprintf(&b, "    check(%s(%s) == %s, \"%s\", \"result\");\n", name, strings.Join(values, ", "), result,
				name)
			fmt.Fprintf(&b, "    check(call == %d, \"%s\", \"number\");\n", number, name)
			for i, c := range checks {
				fmt.Fprintf(&b, "    check(%s, \"%s\", \"%s\");\n", c, name, f.params[i].name)
			}
			b.WriteString("    calls++;\n")
			calls++
		}
	}
	b.WriteString("    if (failures == 0)\n        printf(\"%d calls\\n\", calls);\n    return 0;\n}\n")
	return b.String(), calls
}

// value returns the nth value of a parameter's type, and the member that must receive it.
func (a *abi) value(t typeSpec, n int) (string, class) {
	if t.pointers == 0 && len(t.arrays) == 0 {
		base, member := a.cType(t.base)
		if member == pointer {
			return fmt.Sprintf("POINTER(%s, %d)", base, n), member
		}
		return fmt.Sprintf("INTEGER(%s, %d)", base, n), member
	}
	// An array parameter is a pointer to its element type.
	name := strings.Repeat("*", t.pointers)
	if len(t.arrays) > 0 {
		name += "(*)"
		for _, size := range t.arrays[1:] {
			name += "[" + size + "]"
		}
	}
	if t.pointers == 1 && strings.HasSuffix(t.base, "function") && len(t.arrays) == 0 {
		return fmt.Sprintf("POINTER(%s, %d)", a.declare(typeSpec{pointers: 1, base: t.base}, ""), n), pointer
	}
	return fmt.Sprintf("POINTER(%s, %d)", a.declare(typeSpec{constant: t.constant, base: t.base}, name), n), pointer
}
