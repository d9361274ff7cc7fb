package config

import (
	"fmt"
	"strings"
	"testing"
)

const rankKeys = "the keys here are rank, address, run, peer, allow, kernel, kernel_options, quirks, timing, " +
	"faults, link"

// TestBadFiles checks the exact text of the messages.
func TestBadFiles(t *testing.T) {
	for _, tc := range []struct{ name, file, want string }{
		{"empty", "", `f.yaml:1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin`},
		{"comments only", "# nothing\n",
			`f.yaml:1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin`},
		{"no ranks", "\nranks:\n",
			`f.yaml:2: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin`},
		{"syntax", "log:\n  level: [\n", `f.yaml:2: not valid YAML: the [ is not closed: close it with ]`},
		{"tab", "log:\n\tlevel: info\n", `f.yaml:2: not valid YAML: a tab indents this line: indent with spaces`},
		{"two documents", host + "---\n" + host,
			`f.yaml:2: a second document starts here: the file is one document, so remove the --- or what follows it`},
		{"not a mapping", "- 1\n", `f.yaml:1: want keys with values here, not a list`},
		{"unknown section", host + "lgo: {}\n",
			`f.yaml:2: unknown key "lgo" (did you mean "log"?): the keys here are log, control, attach, http, metrics, record, stop_timeout, tls, ranks, defaults, limits, collectives`},
		{"unknown key", "ranks:\n  - rank: 0\n    adress: 127.0.0.1\n",
			`f.yaml:3: ranks[0]: unknown key "adress" (did you mean "address"?): ` + rankKeys},
		{"unlike any key", "ranks: [{rank: 0, verbosity: 1}]\n",
			`f.yaml:1: ranks[0]: unknown key "verbosity": ` + rankKeys},
		{"deep unknown key", host + "defaults:\n  deadlines:\n    akc: 1s\n",
			`f.yaml:4: defaults.deadlines: unknown key "akc" (did you mean "ack"?): the keys here are clear, ack, data`},
		{"merge key", host + "log:\n  <<: {level: info}\n",
			`f.yaml:3: log: unknown key "<<": the keys here are level, format`},
		{"duplicate key", host + "log:\n  level: info\n\n  level: warn\n",
			`f.yaml:5: log.level: duplicate key, first on line 3: remove one of them`},
		{"alias", "ranks:\n  - {rank: 0, address: &a 127.0.0.1, run: host}\n  - {rank: 1, address: *a, peer: cpu}\n",
			`f.yaml:3: ranks[1].address: *a is an alias, which is not supported: write the value out`},
		{"key is a list", host + "? [a]\n: 1\n", `f.yaml:2: a key must be a name`},
		{"tag", host + "log: {level: !!binary aW5mbw==}\n",
			`f.yaml:2: log.level: the tag "!!binary" is not supported: remove it`},
		{"no value", host + "control:\n  socket:\n",
			`f.yaml:3: control.socket: has no value: give it one, or remove the key`},
		{"no value of an option", host + "defaults:\n  warn_after:\n",
			`f.yaml:3: defaults.warn_after: has no value: give it one, or remove the key`},
		{"empty entry", "ranks:\n  -\n", `f.yaml:2: ranks[0]: empty: fill in the entry or remove it`},
		{"list for a value", host + "log:\n  level: [info]\n", `f.yaml:3: log.level: want one value here, not a list`},
		{"value for a list", "ranks: 3\n", `f.yaml:1: ranks: want a list here, not one value`},
		{"value for a section", host + "log: info\n", `f.yaml:2: log: want keys with values here, not one value`},
		{"fraction", "ranks: [{rank: 1.5}]\n", `f.yaml:1: ranks[0].rank: "1.5" is not a whole number`},
		{"string for a number", "ranks: [{rank: \"0\"}]\n", `f.yaml:1: ranks[0].rank: "0" is not a whole number`},
		{"number too large", "ranks: [{rank: 9223372036854775808}]\n",
			`f.yaml:1: ranks[0].rank: "9223372036854775808" is not a whole number`},
		{"no bool", host + "http: {pprof: 1}\n", `f.yaml:2: http.pprof: "1" is not true or false`},
		{"no unit", host + "defaults: {warn_after: 10}\n",
			`f.yaml:2: defaults.warn_after: "10" is not a time with its unit, as in 100ms, 1.1us or 10s`},
		{"size", host + "limits: {receive_buffer: 16MB}\n",
			`f.yaml:2: limits.receive_buffer: "16MB" is not a size: give bytes, or a number with KiB, MiB or GiB as in 16MiB`},
		{"size overflows", host + "limits: {receive_buffer: 9223372036854775807GiB}\n",
			`f.yaml:2: limits.receive_buffer: "9223372036854775807GiB" is not a size: give bytes, or a number with KiB, MiB or GiB as in 16MiB`},
		{"mode", host + "control: {mode: rw}\n",
			`f.yaml:2: control.mode: "rw" is not a file mode: give octal digits up to 0777, as in "0660"`},
		{"mode too large", host + "control: {mode: 01777}\n",
			`f.yaml:2: control.mode: "01777" is not a file mode: give octal digits up to 0777, as in "0660"`},
		{"address", "ranks: [{rank: 0, address: fpga7, run: host}]\n",
			`f.yaml:1: ranks[0].address: "fpga7" is not an address: give an IP address, or IP:port as in 10.12.200.5:2718`},
		{"port 0", "ranks: [{rank: 0, address: \"127.0.0.1:0\", run: host}]\n",
			`f.yaml:1: ranks[0].address: port 0 cannot be a destination: give 1 to 65535, or leave it out`},
		{"profile", host + "defaults: {profile: V1}\n",
			`f.yaml:2: defaults.profile: unknown profile "V1": the profiles are "cloudfpga", "v0.9" and "extended"`},
		{"kernel", "ranks: [{rank: 0, kernel: ecco}]\n",
			`f.yaml:1: ranks[0].kernel: unknown kernel "ecco" (did you mean "echo"?): the kernels are echo, ring, sink, source, jacobi, kmeans, matvec, backsub, "exec:/path/prog args", "rtl:/path/simulator args" and "rtl-net:/path/simulator args"`},
		{"exec of nothing", "ranks: [{rank: 0, kernel: \"exec: \"}]\n",
			`f.yaml:1: ranks[0].kernel: exec: no program: write exec:/path/prog, followed by its arguments`},
		{"datatype", "ranks: [{rank: 0, kernel_options: {datatype: double}}]\n",
			`f.yaml:1: ranks[0].kernel_options.datatype: unknown datatype "double": it is int or float`},
		{"several", "log: {level: 1, x: 2}\nranks: [{rank: a}]\n",
			"f.yaml:1: log: unknown key \"x\": the keys here are level, format\nf.yaml:2: ranks[0].rank: \"a\" is " +
				"not a whole number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse(strings.NewReader(tc.file), "f.yaml")
			if got := text(err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			if c != nil {
				t.Error("an error, and a configuration as well")
			}
		})
	}
}

func TestManyProblems(t *testing.T) {
	var file strings.Builder
	for i := range 50000 {
		fmt.Fprintf(&file, "key%d:\n", i)
	}
	_, err := Parse(strings.NewReader(file.String()), "f.yaml")
	lines := strings.Split(text(err), "\n")
	if len(lines) != 21 || lines[20] != "f.yaml: and 49980 more problems" {
		t.Errorf("%d lines, the last %q", len(lines), lines[len(lines)-1])
	}
}

func TestLongValuesAreCut(t *testing.T) {
	for _, file := range []string{
		strings.Repeat("k", 100000) + ": 1\n",
		"log: {level: " + strings.Repeat("x", 100000) + "}\n" + host,
		host + "defaults: {profile: " + strings.Repeat("x", 100000) + "}\n",
		"ranks: [{rank: 0, address: " + strings.Repeat("1", 100000) + "}]\n",
	} {
		_, err := Parse(strings.NewReader(file), "f.yaml")
		if n := len(text(err)); n == 0 || n > 400 {
			t.Errorf("the error has %d bytes", n)
		}
	}
}
