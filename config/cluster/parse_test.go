package cluster

import (
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

const (
	clusterFile = `{
  "nodes": {
    "cpu" : [0],
    "fpga" : [3, 1, 2]
  },
  "config": {
    "com_opt": 3,
    "mem_opt": 1
  }
}
`
	bothFile = `{"nodes": {"cpu": [0, 1], "fpga": [0, 1]}}`
	answer   = `{"cluster_id": 7, "nodes": [
  {"node_id": 1, "node_ip": "10.12.200.7", "image_id": "6d6c2e1b-c5a4", "slot": 12},
  {"node_id": 0, "node_ip": "10.12.0.1", "image_id": "NON_FPGA"},
  {"node_id": "2", "node_ip": "10.12.200.4", "image_id": 44}
], "project": "default"}`
)

func mustParse(t *testing.T, text string) *Cluster {
	t.Helper()
	c, err := Parse(strings.NewReader(text), "f.json")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestParse(t *testing.T) {
	ip := netip.MustParseAddr
	for _, tc := range []struct {
		name, file string
		want       Cluster
	}{
		{"cluster file", clusterFile, Cluster{
			File: "f.json", Nodes: []Node{{Rank: 0, CPU: true}, {Rank: 1, FPGA: true}, {Rank: 2, FPGA: true},
				{Rank: 3, FPGA: true}},
			FPGAs: []int{3, 1, 2}, ComOpt: 3,
		}},
		{"both kinds", bothFile, Cluster{
			File: "f.json", Nodes: []Node{{Rank: 0, CPU: true, FPGA: true}, {Rank: 1, CPU: true, FPGA: true}},
			ComOpt: 1, FPGAs: []int{0, 1},
		}},
		{"unknown keys, no FPGA", `{"nodes": {"cpu": [0], "gpu": [9]}, "config": {"x": 1}, "y": []}`, Cluster{
			File: "f.json", Nodes: []Node{{Rank: 0, CPU: true}}, ComOpt: 1,
		}},
		{"manager's answer", answer, Cluster{
			File: "f.json", Format: ManagerAnswer, FPGAs: []int{1, 2},
			Nodes: []Node{
				{Rank: 0, CPU: true, Addr: ip("10.12.0.1")}, {Rank: 1, FPGA: true, Addr: ip("10.12.200.7")},
				{Rank: 2, FPGA: true, Addr: ip("10.12.200.4")},
			},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := mustParse(t, tc.file)
			got.source, got.unknownKeyErrs = strictyaml.Source{}, nil
			if !reflect.DeepEqual(*got, tc.want) {
				t.Errorf("got\n%+v\nwant\n%+v", *got, tc.want)
			}
		})
	}
}

// TestUnknownKeys checks the warnings for unknown keys in a cluster file. The resource manager's keys cause none.
func TestUnknownKeys(t *testing.T) {
	warnings := func(text string) string {
		pool, err := ParsePool("127.0.0.1-127.0.0.9")
		if err != nil {
			t.Fatal(err)
		}
		c := mustParse(t, text)
		if c.Format == ManagerAnswer {
			pool = Pool{}
		}
		cfg, err := c.Config(Options{Addresses: pool})
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(cfg.Warnings(), "\n")
	}
	want := `f.json:4: config: unknown key "comopt" (did you mean "com_opt"?): the keys here are com_opt, mem_opt` +
		"\n" +
		`f.json:3: nodes: unknown key "gpu" (did you mean "cpu"?): the keys here are cpu, fpga` + "\n" +
		`f.json:1: unknown key "y": the keys here are nodes, config`
	file := "{\"y\": [{\"z\": 1}], \"nodes\": {\n\"cpu\": [0],\n\"gpu\": [9]},\n\"config\": {\"comopt\": 1}}"
	if got := warnings(file); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := warnings(answer); strings.Contains(got, "unknown key") {
		t.Error(got)
	}
}

// TestDeepFile checks that the time and memory for finding lines are linear in the length of the file.
func TestDeepFile(t *testing.T) {
	const depth = 9_000
	for _, text := range []string{
		`{"nodes": {"cpu": [0]}, "x": ` + strings.Repeat("[", depth) + strings.Repeat("]", depth) + "}",
		`{"nodes": {"cpu": [0]}, ` + strings.Repeat("\n\"x\": 1,", 90_000) + `"y": 1}`,
	} {
		c := mustParse(t, text)
		if n := len(c.source.Lines()); len(c.unknownKeyErrs) == 0 || len(c.unknownKeyErrs) > 2 || n > 10 {
			t.Errorf("%v, lines of %d keys", c.unknownKeyErrs, n)
		}
	}
}

func TestParseErrors(t *testing.T) {
	node := func(rest string) string { return `{"nodes": [{` + rest + `}]}` }
	for _, tc := range []struct{ name, file, want string }{
		{"empty", "", "f.json:1: not valid JSON: unexpected end of JSON input: write {\"nodes\": {\"cpu\": [ranks], " +
			"\"fpga\": [ranks]}}"},
		{"syntax", "{\n\"nodes\": {\n\"cpu\": [0,]\n}}", "f.json:3: not valid JSON: invalid character ']' looking " +
			"for beginning of value: write a value there, and no comma after the last one"},
		{"trailing", "{}\n{}", "f.json:2: not valid JSON: invalid character '{' after top-level value: the file is " +
			"one object: remove the text after it"},
		{"list of clusters", "[{}]", "f.json:1: want an object here, not array"},
		{"level", "{\n\"config\": {\"com_opt\": \"high\"}}",
			"f.json:2: config.com_opt: want a whole number here, not string"},
		{"level below 0", `{"config": {"com_opt": -1}}`, "f.json:1: config: com_opt is -1: levels start at 0"},
		{"misspelt nodes", "{\n\"node\": {\"cpu\": [0]}}",
			"f.json:1: nodes: missing: a cluster file has {\"cpu\": [ranks], \"fpga\": [ranks]} there, the resource " +
				"manager's answer a list of nodes\n" +
				`f.json:2: unknown key "node" (did you mean "nodes"?): the keys here are nodes, config`},
		{"misspelt kind", "{\"nodes\": {\"cpu\": [0],\n\"fgpa\": [2], \"fpga\": [2]}}",
			"f.json:1: nodes: rank 1 is missing: 2 nodes have the ranks 0 to 1\n" +
				`f.json:2: nodes: unknown key "fgpa" (did you mean "fpga"?): the keys here are cpu, fpga`},
		{"not closed", "{\"nodes\": {\n\"cpu\": [0],\n\"fpga\": [1]\n}\n",
			"f.json:1: not valid JSON: the { is not closed: close it with }"},
		{"quote not closed", "{\"nodes\": {\n\"cpu: [0]}}\n",
			"f.json:2: not valid JSON: the \" is not closed: close it with \""},
		{"no comma", "{\"nodes\": {\"cpu\": [0]\n\"fpga\": [1]}}", "f.json:2: not valid JSON: invalid character '\"' " +
			"after object key:value pair: write a comma before the next key, or } at the end"},
		{"key without quotes", "{\nnodes: {}}", "f.json:2: not valid JSON: invalid character 'n' looking for " +
			"beginning of object key string: write the key in double quotes, and no comma after the last one"},
		{"no colon", "{\n\"nodes\" {}}",
			"f.json:2: not valid JSON: invalid character '{' after object key: write a colon after the key"},
		{"no nodes", `{"cluster_id": 1}`,
			`f.json:1: nodes: missing: a cluster file has {"cpu": [ranks], "fpga": [ranks]} there, the resource manager's answer a list of nodes`},
		{"nodes is null", `{"nodes": null}`,
			`f.json:1: nodes: missing: a cluster file has {"cpu": [ranks], "fpga": [ranks]} there, the resource manager's answer a list of nodes`},
		{"no ranks", `{"nodes": {}}`, "f.json:1: nodes: the list is empty: a cluster has at least rank 0"},
		{"no list entries", `{"nodes": []}`, "f.json:1: nodes: the list is empty: a cluster has at least rank 0"},
		{"cpu is a number", `{"nodes": {"cpu": 0}}`, "f.json:1: nodes.cpu: want a list here, not number"},
		{"rank is an object", `{"nodes": {"fpga": [{}]}}`, "f.json:1: nodes.fpga: want a number here, not object"},
		{"rank below 0", `{"nodes": {"cpu": [0, -1]}}`,
			"f.json:1: nodes.cpu[1]: -1 is not a rank: it is a whole number, 0 to 2147483647"},
		{"fraction", `{"nodes": {"cpu": [0.5]}}`,
			"f.json:1: nodes.cpu[0]: 0.5 is not a rank: it is a whole number, 0 to 2147483647"},
		{"huge", `{"nodes": {"cpu": [4294967296]}}`,
			"f.json:1: nodes.cpu[0]: 4294967296 is not a rank: it is a whole number, 0 to 2147483647"},
		{"null rank", `{"nodes": {"cpu": [null]}}`, "f.json:1: nodes.cpu[0]: missing: give the rank"},
		{"twice in a list", `{"nodes": {"fpga": [0, 0]}}`,
			"f.json:1: nodes.fpga[1]: rank 0 is listed twice: remove one of them"},
		{"gap", `{"nodes": {"cpu": [0], "fpga": [1, 3]}}`,
			"f.json:1: nodes: rank 2 is missing: 3 nodes have the ranks 0 to 2"},
		{"no rank 0", `{"nodes": {"fpga": [1]}}`, "f.json:1: nodes: rank 0 is missing: 1 nodes have the ranks 0 to 0"},
		{"no node_id", node(`"node_ip": "10.0.0.1", "image_id": "x"`),
			"f.json:1: nodes[0].node_id: missing: give the rank"},
		{"no node_ip", node(`"node_id": 0, "image_id": "x"`),
			"f.json:1: nodes[0].node_ip: missing: rank 0 has no address yet; ask the resource manager again when the " +
				"cluster is up"},
		{"bad node_ip", node(`"node_id": 0, "node_ip": "fpga7", "image_id": "x"`),
			`f.json:1: nodes[0].node_ip: "fpga7" is not an IP address`},
		{"node_ip is a number", node(`"node_id": 0, "node_ip": 7`),
			`f.json:1: nodes.node_ip: want a string here, not number`},
		{"no image_id", node(`"node_id": 0, "node_ip": "10.0.0.1"`),
			"f.json:1: nodes[0].image_id: missing: it is NON_FPGA for a CPU rank, and an image's name for an FPGA"},
		{"node twice", `{"nodes": [{"node_id": 0, "node_ip": "10.0.0.1", "image_id": "x"}, {"node_id": 0, "node_ip": "10.0.0.2", "image_id": "x"}]}`,
			"f.json:1: nodes: rank 0 is listed twice: remove one of them"},
		{"node_id is a word", node(`"node_id": "abc"`),
			"f.json:1: nodes: a rank in it is not a number: ranks are whole numbers from 0"},
		{"node is a number", `{"nodes": [3]}`, "f.json:1: nodes: want an object here, not number"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, err := Parse(strings.NewReader(tc.file), "f.json")
			if got := text(err); got != tc.want {
				t.Errorf("got\n%s\nwant\n%s", got, tc.want)
			}
			var e *Error
			if c != nil || !errors.As(err, &e) {
				t.Errorf("cluster %v, error of type %T", c, err)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	if _, err := Parse(strings.NewReader(strings.Repeat(" ", strictyaml.MaxFileSize+1)), "big.json"); !errors.Is(err,
		strictyaml.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := Parse(strings.NewReader(bothFile+strings.Repeat(" ", strictyaml.MaxFileSize-len(bothFile))),
		"full.json"); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
	if _, err := Parse(iotest.ErrReader(io.ErrUnexpectedEOF), "f.json"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.json")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
	path := filepath.Join(t.TempDir(), "cluster.json")
	if err := os.WriteFile(path, []byte(clusterFile), 0o600); err != nil {
		t.Fatal(err)
	}
	if c, err := Load(path); err != nil || c.File != path || len(c.Nodes) != 4 {
		t.Errorf("%+v, %v", c, err)
	}
}
