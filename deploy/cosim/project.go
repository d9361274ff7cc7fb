// Package cosim has the simulator's side of a role in simulation, and the projects that
// `zrlctl cosim new` writes around it.
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

// files: shim has zrlmpi_cosim, which all simulators share, and one more file for each. They are in
// a folder without Go, as Go takes C files for its own.
//
//go:embed shim project verilog vhdl hls verilog-mpe vhdl-mpe
var files embed.FS

// language is what a project of a language has beside what all have.
type language struct {
	role  string   // the file of the role
	shims []string // its part of folder shim
	waves string   // how to see waves, for the README
	mpe   bool     // the role has an MPE of its own
}

// Languages are the languages of a role, in the order of documentation. Those of verilog-mpe and vhdl-mpe have a Message
// Passing Engine of their own.
var Languages = []string{"verilog", "vhdl", "hls", "verilog-mpe", "vhdl-mpe"}

const verilatorWaves = "Waves: `make clean role WAVES=1`; then each run writes `waves.fst`, for GTKWave, and `waves.fst.old` with earlier cycles when it has 256 MiB " +
	"(`ZRLMPI_COSIM_WAVES_MB`). A time of 10 is a cycle. `WAVES=vcd` writes `waves.vcd` instead, which `zrlctl cosim waves` reads."

var languages = map[string]language{
	"verilog":     {"role.v", []string{"verilator.cpp", "verilator_main.h"}, verilatorWaves, false},
	"vhdl":        {"role.vhdl", []string{"cosim.vhdl", "ghdl.c"}, "Waves: `kernel: \"rtl:./role --fst=waves.fst\"` in `cluster.yaml`, for GTKWave. A cycle takes 6.4 ns in it. Its size has no bound.", false},
	"hls":         {"role.cpp", []string{"hls_stream.h"}, "This is a program in C++, not a simulation of hardware: a cycle is an access to a stream. `gdb` and `printf` show what the role does.", false},
	"verilog-mpe": {"role.v", []string{"verilator_network.cpp", "verilator_main.h"}, verilatorWaves, true},
	"vhdl-mpe":    {"role.vhdl", []string{"cosim_network.vhdl", "ghdl.c"}, "Waves: `kernel: \"rtl-net:time_scale=20 ./role --fst=waves.fst\"` in `cluster.yaml`, for GTKWave. A cycle takes 6.4 ns in it. Its size has no bound.", true},
}

// Write writes a project with a role in a language into a folder, which is made, and returns
// the paths of its files. The programs are looked for in PATH, and then in folder bin. No file
// that exists is changed: the error is then a fs.ErrExist.
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
	if l.mpe {
		kernel, scale, alone = "rtl-net", "time_scale=20 ", ""
	}
	fill := strings.NewReplacer("@BIN@", bin, "@ROLE@", "`"+l.role+"`", "@WAVES@", l.waves, "@KERNEL@", kernel, "@SCALE@", scale, "@ALONE@", alone)
	return writeNew(dir, from, fill)
}

// writeNew writes files, of which none may exist.
func writeNew(dir string, from map[string]string, fill *strings.Replacer) (written []string, err error) {
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
		text, err := files.ReadFile(from[name])
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
