package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func deployFiles(t testing.TB) map[string][]byte {
	t.Helper()
	paths, _ := filepath.Glob("../deploy/*.yaml")
	files := make(map[string][]byte)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = text
	}
	for _, name := range []string{"demo.yaml", "standins.yaml", "zrlmpid.reference.yaml"} {
		if files[name] == nil {
			t.Fatalf("deploy/%s is missing", name)
		}
	}
	return files
}

// reparse prints c and parses the result. It clears the line numbers, which differ.
func reparse(t *testing.T, c *Config) (first, second *Config) {
	t.Helper()
	text, err := c.YAML()
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(strings.NewReader(string(text)), "printed.yaml")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	c.source, again.source = source{}, source{}
	return c, again
}

func TestDeployFilesRoundTrip(t *testing.T) {
	for name, file := range deployFiles(t) {
		t.Run(name, func(t *testing.T) {
			c := mustParse(t, string(file))
			if w := c.Warnings(); w != nil {
				t.Errorf("warnings: %q", w)
			}
			if c, again := reparse(t, c); !reflect.DeepEqual(c, again) {
				t.Errorf("printed and read again:\n%+v, want\n%+v", again, c)
			}
		})
	}
}

// TestDefaultPathsAreNotPrinted checks that a printed configuration contains only paths that its file sets, because
// the default paths depend on the session.
func TestDefaultPathsAreNotPrinted(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	for _, tt := range []struct {
		text  string
		paths int
	}{
		{"", 0},
		{"control: {socket: /run/user/7/zrlmpid.sock}\n", 1},
		{"attach: {socket: /run/user/7/zrlmpid-attach.sock}\nrecord: {spool: {directory: /run/user/7/records}}\n", 2},
	} {
		printed, err := mustParse(t, tt.text+host).YAML()
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(printed), "/run/user/7"); n != tt.paths {
			t.Errorf("%q: %d paths, want %d:\n%s", tt.text, n, tt.paths, printed)
		}
	}
}

func TestRoundTripKeepsWhatDiffersFromDefaults(t *testing.T) {
	c := mustParse(t, `
control: {socket: "", mode: 0600, allow: {}}
attach: {socket: /run/a.sock}
http: {listen: "[::]:0", web_config: w.yml, pprof: true}
metrics: {peers: 0}
stop_timeout: 0s
tls: {certificate: c.pem, key: k.pem, authority: /a.pem}
limits: {receive_buffer: 4097, offload: off, unexpected: 1, posted: 67108864, attached_bytes: 1MiB}
collectives: {table: t.yaml, force: "bcast=atomic:65536, reduce_scatter=pairwise", order: by-left, upstream: tree, fpgas: [2, 1]}
defaults: {transport: tcp, max_message_words: 0, pace: {per_datagram: 0s}, deadlines: {ack: 0}}
ranks:
  - {rank: 1, address: "[fd00::2%eth0]:9", run: standin, kernel: "exec:/a/b 'c  d'", link: {profile: v0.9, on_partial: retransmit},
     quirks: off, timing: deployed}
  - {rank: 2, address: fd00::3, peer: software, link: {profile: extended, eager_limit: 0, eager_credit: 4097}}
  - {rank: 5, address: fd00::6, run: host, allow: {users: [alice, "1001"], groups: [mpi]}}
  - {rank: 3, address: fd00::4, run: standin, kernel: jacobi,
     kernel_options: {words: 7, datatype: float, columns: 3, lines: 2}}
  - {rank: 4, address: fd00::5, run: standin, kernel: kmeans,
     kernel_options: {dimensions: 1, iterations: 2, norm_limit: 3}}
  - {rank: 0, address: fd00::1, run: standin, peer: software, kernel: source,
     kernel_options: {peer: 1, words: 1, datatype: float, interval: 1us}}
`)
	if c, again := reparse(t, c); !reflect.DeepEqual(c, again) {
		t.Errorf("printed and read again:\n%+v, want\n%+v", again, c)
	}
}

// TestReferenceShowsDefaults compares the values in the reference file with the defaults.
func TestReferenceShowsDefaults(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "")
	ref, def := mustParse(t, string(deployFiles(t)["zrlmpid.reference.yaml"])), New()
	if got, want := ref.AttachSocket(), def.AttachSocket(); got != want {
		t.Errorf("attach.socket: %s, want %s", got, want)
	}
	if got, want := ref.ControlSocket(), def.ControlSocket(); got != want {
		t.Errorf("control.socket: %s, want %s", got, want)
	}
	ref.Control.Socket, ref.Control.Allow, ref.HTTP.Hosts = nil, nil, nil // the lists are examples
	if ref.Log != def.Log || ref.Control != def.Control || ref.Limits != def.Limits ||
		!reflect.DeepEqual(ref.HTTP, def.HTTP) || ref.Metrics != def.Metrics {
		t.Errorf("%+v %+v %+v %+v %+v, want\n%+v %+v %+v %+v %+v", ref.Log, ref.Control, ref.Limits, ref.HTTP,
			ref.Metrics,
			def.Log, def.Control, def.Limits, def.HTTP, def.Metrics)
	}
	if ref.Collectives.Table != def.Collectives.Table || ref.Collectives.Order != def.Collectives.Order {
		t.Errorf("%+v, want %+v", ref.Collectives, def.Collectives)
	}
	var options KernelOptions
	if r := ref.Rank(1); *r.KernelOptions != options || r.Quirks != QuirksOn || r.Timing != TimingDeployed {
		t.Errorf("%+v", r)
	}
}
