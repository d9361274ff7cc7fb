// Package cosim contains the simulator's side of the connection between zrlmpid and a simulated role, and the projects
// that `zrlctl cosim new` writes.
package cosim

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// projectFiles contains the files that Write copies into projects. The folder shim contains zrlmpi_cosim, which all
// simulators share, and the files for each simulator. No folder contains a Go file, because the go command would then
// compile the C files next to it.
//
//go:embed shim project verilog vhdl hls verilog-mpe vhdl-mpe
var projectFiles embed.FS

// language describes the parts of a project that depend on the role's language.
type language struct {
	role   string   // the file of the role
	shims  []string // the language's files in folder shim
	waves  string   // instructions for waves, for the README
	hasMPE bool     // the role includes an MPE
}

// Languages lists the languages in which a role can be written, in the order of the documentation. In verilog-mpe and
// vhdl-mpe, the role includes a Message Passing Engine.
var Languages = []string{"verilog", "vhdl", "hls", "verilog-mpe", "vhdl-mpe"}

const verilatorWaves = "Waves: `make clean role WAVES=1`; then each run writes `waves.fst`, for GTKWave, and " +
	"`waves.fst.old` with earlier cycles when it has 256 MiB " +
	"(`ZRLMPI_COSIM_WAVES_MB`). A time of 10 is a cycle. `WAVES=vcd` writes `waves.vcd` instead, which `zrlctl cosim waves` reads."

var languages = map[string]language{
	"verilog": {"role.v", []string{"verilator.cpp", "verilator_main.h"}, verilatorWaves, false},
	"vhdl": {"role.vhdl", []string{"cosim.vhdl", "ghdl.c"}, "Waves: `kernel: \"rtl:./role --fst=waves.fst\"` " +
		"in `cluster.yaml`, for GTKWave. A cycle takes 6.4 ns in it. Its size has no bound.", false},
	"hls": {"role.cpp", []string{"hls_stream.h"}, "This is a program in C++, not a simulation of hardware: a " +
		"cycle is an access to a stream. Debug the role with `gdb` or `printf`.", false},
	"verilog-mpe": {"role.v", []string{"verilator_network.cpp", "verilator_main.h"}, verilatorWaves, true},
	"vhdl-mpe": {"role.vhdl", []string{"cosim_network.vhdl", "ghdl.c"},
		"Waves: `kernel: \"rtl-net:time_scale=20 ./role --fst=waves.fst\"` in `cluster.yaml`, for GTKWave. A cycle " +
			"takes 6.4 ns in it. Its size has no bound.", true},
}

// Write creates the folder dir, writes a project with a role in the given language into it, and returns the paths of
// the files. The project's Makefile searches for programs in PATH and then in the folder bin. Write never changes an
// existing file; if a file exists, the error is fs.ErrExist.
func Write(dir, lang, bin string) (written []string, err error) {
	l, ok := languages[lang]
	if !ok {
		return nil, fmt.Errorf("unknown language %q: the languages are %s", lang, strings.Join(Languages, ", "))
	}
	from := map[string]string{
		l.role: path.Join(lang, l.role), "Makefile": path.Join(lang, "Makefile"),
		"cluster.yaml": "project/cluster.yaml", "README.md": "project/README.md",
		"cosim/targets.mk": "project/targets.mk", "cosim/echo.sh": "project/echo.sh",
	}
	for _, name := range append([]string{"zrlmpi_cosim.c", "zrlmpi_cosim.h"}, l.shims...) {
		from["cosim/"+name] = "shim/" + name
	}
	kernel, scale := "rtl", ""
	alone := "; `make alone` tries the role without it"
	if l.hasMPE {
		kernel, scale, alone = "rtl-net", "time_scale=20 ", ""
	}
	fill := strings.NewReplacer("@BIN@", bin, "@ROLE@", "`"+l.role+"`", "@WAVES@", l.waves, "@KERNEL@", kernel,
		"@SCALE@", scale, "@ALONE@", alone)
	return writeNewFiles(dir, from, fill)
}

// writeNewFiles writes new files. If one of them exists already, it writes none.
func writeNewFiles(dir string, from map[string]string, fill *strings.Replacer) (written []string, err error) {
	for name := range from {
		at := filepath.Join(dir, name)
		if _, err := os.Lstat(at); err == nil {
			return nil, fmt.Errorf("%s is there: %w: name another folder, or remove it", at, fs.ErrExist)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "cosim"), 0o777); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(from)) {
		text, err := projectFiles.ReadFile(from[name])
		if err != nil {
			return written, err
		}
		at := filepath.Join(dir, name)
		file, err := os.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
		if err != nil {
			return written, err
		}
		_, err = file.WriteString(fill.Replace(string(text)))
		if err = errors.Join(err, file.Close()); err != nil {
			return written, err
		}
		written = append(written, at)
	}
	return written, nil
}
