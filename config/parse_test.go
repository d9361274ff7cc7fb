package config

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
	"time"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// host is the shortest valid file.
const host = "ranks: [{rank: 0, address: 127.0.0.1, run: host}]\n"

func mustParse(t *testing.T, text string) *Config {
	t.Helper()
	c, err := Parse(strings.NewReader(text), "f.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestParseDefaults(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	c := mustParse(t, `
ranks:
  - {rank: 2, address: 10.0.0.3, peer: fpga}
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, run: standin, quirks: off}
`)
	if want := (Log{"info", "console"}); c.Log != want {
		t.Errorf("log: %+v, want %+v", c.Log, want)
	}
	if want := (Control{Mode: 0o660}); c.Control != want || c.ControlSocket() != "/run/user/7/zrlmpid.sock" {
		t.Errorf("control: %+v at %s, want %+v", c.Control, c.ControlSocket(), want)
	}
	if c.Limits.ReceiveBuffer != 16<<20 || c.Limits.Offload != OffloadAuto {
		t.Errorf("limits: %+v", c.Limits)
	}
	want := []Rank{
		{Rank: 2, Address: Address{netip.MustParseAddrPort("10.0.0.3:2718")}, Peer: PeerFPGA},
		{Rank: 0, Address: Address{netip.MustParseAddrPort("10.0.0.1:2718")}, Run: RunHost, Peer: PeerSoftware},
		{Rank: 1, Address: Address{netip.MustParseAddrPort("10.0.0.2:2718")}, Run: RunStandin, Peer: PeerFPGA,
			Kernel: Kernel{Name: KernelEcho}, KernelOptions: &KernelOptions{},
			Quirks: QuirksOff, Timing: TimingDefault},
	}
	if !reflect.DeepEqual(c.Ranks, want) {
		t.Errorf("ranks:\n%+v, want\n%+v", c.Ranks, want)
	}
	if r := c.Rank(2); r != &c.Ranks[0] {
		t.Errorf("Rank(2) = %+v", r)
	}
	if r := c.Rank(3); r != nil {
		t.Errorf("Rank(3) = %+v, want nil", r)
	}
	if local := c.LocalRanks(); len(local) != 2 || local[0] != &c.Ranks[1] || local[1] != &c.Ranks[2] {
		t.Errorf("Local() = %+v", local)
	}
}

func TestParseValues(t *testing.T) {
	c := mustParse(t, `
log: {level: debug, format: json}
control: {socket: "", mode: 0600}
limits: {receive_buffer: 65536, offload: off}
ranks:
  - rank: 0
    address: "[fd00::1]:4000"
    run: standin
    peer: software
    kernel: "exec:/opt/prog  -n 3"
  - rank: 1
    address: ::ffff:10.0.0.1
    run: standin
    peer: software
    kernel: source
    kernel_options: {peer: 0, words: 0x10, count: 1_000, interval: 5ms, datatype: float}
    link:
`)
	if c.ControlSocket() != "" || c.Control.Mode != 0o600 || c.Limits.ReceiveBuffer != 65536 ||
		c.Limits.Offload != OffloadOff || c.Log != (Log{"debug", "json"}) {
		t.Errorf("%+v", c)
	}
	r := c.Ranks[0]
	if r.Address.String() != "[fd00::1]:4000" || r.Quirks != "" || *r.KernelOptions != (KernelOptions{}) ||
		!reflect.DeepEqual(r.Kernel, Kernel{Name: KernelExec, Command: []string{"/opt/prog", "-n", "3"}}) {
		t.Errorf("rank 0: %+v", r)
	}
	r = c.Ranks[1]
	if want := (KernelOptions{Words: 16, Count: 1000, Interval: 5 * time.Millisecond,
		Datatype: Datatype(protocol.Float)}); *r.KernelOptions != want || r.Link != nil {
		t.Errorf("rank 1: %+v, want %+v", *r.KernelOptions, want)
	}
	if r.Address.String() != "10.0.0.1:2718" {
		t.Errorf("an IPv4 address in IPv6 form is %v", r.Address)
	}
}

// TestPorts checks upstream's rule: the ports of ranks on one IP address start at 2718, in the order of their
// numbers, not of the file.
func TestPorts(t *testing.T) {
	c := mustParse(t, `
ranks:
  - {rank: 2, address: 10.0.0.1, peer: cpu}
  - {rank: 0, address: 10.0.0.1, run: host}
  - {rank: 1, address: 10.0.0.2, peer: cpu}
  - {rank: 3, address: "10.0.0.1:5000", peer: cpu}
  - {rank: 4, address: 10.0.0.1, peer: cpu}
`)
	want := []uint16{2718, 2718, 2719, 5000, 2721}
	for rank := range c.Ranks {
		addr := c.Rank(rank).Address.AddrPort
		if addr.Port() != want[rank] {
			t.Errorf("rank %d: port %d, want %d", rank, addr.Port(), want[rank])
		}
	}
}

func TestParseStreamErrors(t *testing.T) {
	if _, err := Parse(strings.NewReader(strings.Repeat("#", strictyaml.MaxFileSize+1)), "big.yaml"); !errors.Is(err,
		strictyaml.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := Parse(strings.NewReader(host+strings.Repeat("#", strictyaml.MaxFileSize-len(host))),
		"full.yaml"); err != nil {
		t.Errorf("a file of the largest size: %v", err)
	}
	if _, err := Parse(iotest.ErrReader(io.ErrUnexpectedEOF), "f.yaml"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err := Load(filepath.Join(t.TempDir(), "none.yaml")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

func TestErrorType(t *testing.T) {
	_, err := Parse(strings.NewReader("log:\n  level: loud\n"+host), "f.yaml")
	var e *Error
	if !errors.As(err, &e) {
		t.Fatalf("%v is no *Error", err)
	}
	if e.File != "f.yaml" || e.Line != 2 || e.Key != "log.level" || e.Problem == "" {
		t.Errorf("%+v", e)
	}
}

func TestDefaultSocket(t *testing.T) {
	for _, tc := range []struct{ dir, want string }{
		{"/run/user/1000", "/run/user/1000/zrlmpid.sock"},
		{"", "/run/zrlmpid/control.sock"},
		{"relative", "/run/zrlmpid/control.sock"},
	} {
		t.Setenv("XDG_RUNTIME_DIR", tc.dir)
		if got := DefaultSocket(); got != tc.want {
			t.Errorf("XDG_RUNTIME_DIR=%q: %s, want %s", tc.dir, got, tc.want)
		}
	}
}

func TestEnvironment(t *testing.T) {
	const file = "log: {level: warn}\ncontrol: {socket: /s}\nlimits: {offload: off}\n" + host
	for _, tc := range []struct {
		name                   string
		env                    map[string]string
		level, socket, offload string
		err                    string
	}{
		{"nothing", nil, "warn", "/s", "off", ""},
		{"all", map[string]string{EnvLogLevel: "debug", EnvControlSocket: "/t", EnvOffload: "auto"}, "debug", "/t",
			"auto", ""},
		{"empty", map[string]string{EnvLogLevel: "", EnvControlSocket: "", EnvOffload: ""}, "warn", "", "off", ""},
		{"bad offload", map[string]string{EnvOffload: "of"}, "warn", "/s", "off",
			`ZRLMPI_OFFLOAD: "of" is not known (did you mean "off"?): it is one of auto, off`},
		{"bad level", map[string]string{EnvLogLevel: "infp"}, "warn", "/s", "off",
			`ZRLMPID_LOG_LEVEL: "infp" is not known (did you mean "info"?): it is one of debug, info, warn, error`},
		{"bad socket", map[string]string{EnvControlSocket: "x"}, "warn", "/s", "off",
			`ZRLMPID_CONTROL_SOCKET: "x" is not an absolute path: start it with /, or write "" for no socket`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := mustParse(t, file)
			err := c.ApplyEnv(func(k string) (string, bool) { v, ok := tc.env[k]; return v, ok })
			if got := text(err); got != tc.err {
				t.Errorf("error %q, want %q", got, tc.err)
			}
			if c.Log.Level != tc.level || c.ControlSocket() != tc.socket || c.Limits.Offload != tc.offload {
				t.Errorf("level %q, socket %q, offload %q", c.Log.Level, c.ControlSocket(), c.Limits.Offload)
			}
		})
	}
}

func TestLoadAppliesEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	if err := os.WriteFile(path, []byte(host), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvLogLevel, "error")
	if c, err := Load(path); err != nil || c.Log.Level != "error" {
		t.Errorf("%+v, %v", c, err)
	}
	t.Setenv(EnvLogLevel, "loud")
	if _, err := Load(path); err == nil {
		t.Error("a bad level in the environment is not an error")
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
