package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/internal/query"
	"github.com/zrlmpi/zrlmpid/internal/version"
	"github.com/zrlmpi/zrlmpid/node/statetest"
	"github.com/zrlmpi/zrlmpid/transport/bindfault"
)

const testTimeout = 20 * time.Second

// testConfig returns a configuration with unused addresses and its own control socket.
func testConfig(t *testing.T) (text, addr1, socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "c.sock")
	network := loopback.Network(t)
	addr := func(last int) string { return fmt.Sprintf("%s%d:20000", network, last) }
	text = fmt.Sprintf("control: {socket: %q}\nhttp: {listen: \"\"}\nranks:\n  - {rank: 0, address: %q, run: host}\n "+
		" - {rank: 1, address: %q, run: standin}\n",
		socket, addr(1), addr(2))
	return text, addr(2), socket
}

func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestMain(m *testing.M) { os.Exit(statetest.Run(m)) }

// zrlmpid runs the command and waits for it to end.
func zrlmpid(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	var out, errs bytes.Buffer
	code = run(ctx, args, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

func TestCommandLine(t *testing.T) {
	good, _, _ := testConfig(t)
	goodFile := file(t, "good.yaml", good)
	bad := file(t, "bad.yaml", "ranks:\n  - {rank: 0, adress: 10.0.0.1, run: host}\nlogs: {level: info}\n")
	clusterFile := file(t, "cluster.json", `{"nodes": {"cpu": [0], "fpga": [1, 2]}}`)
	both := file(t, "both.json", `{"nodes": {"cpu": [0, 1], "fpga": [0, 1]}}`)
	pool := "127.77.0.1-127.77.0.9"
	for _, tt := range []struct {
		name, stdin    string
		args           []string
		code           int
		stdout, stderr []string
	}{
		{name: "good", args: []string{"-config", goodFile, "-check-config"},
			stdout: []string{"ok: " + goodFile + ": 2 of 2 ranks are local"}},
		{name: "standard input", stdin: good, args: []string{"-config", "-", "-check-config"},
			stdout: []string{"ok: standard input"}},
		{name: "warnings", stdin: good + "  - {rank: 2, address: 10.0.0.1, peer: fpga}\n",
			args:   []string{"-config", "-", "-check-config"},
			stdout: []string{"warning: rank 0 has port", "ok: "}},
		{name: "all problems", args: []string{"-config", bad, "-check-config"}, code: exitUsage,
			stderr: []string{bad + ":2: ranks[0]: unknown key \"adress\" (did you mean",
				bad + ":3: unknown key \"logs\""}},
		{name: "bad value", stdin: good + "log: {level: loud}\n", args: []string{"-config", "-", "-check-config"},
			code: exitUsage, stderr: []string{"standard input:6: log.level"}},
		{name: "bad file, run", args: []string{"-config", bad}, code: exitUsage, stderr: []string{"adress"}},
		{name: "a program that is not there",
			stdin: strings.Replace(good, "run: standin", `run: standin, kernel: "exec:/no/such/program"`, 1),
			args:  []string{"-config", "-", "-check-config"}, code: exitUsage,
			stderr: []string{"standard input:5: ranks[1].kernel: ", "/no/such/program"}},
		{name: "no file", args: []string{"-config", "/no/such/file"}, code: exitUsage,
			stderr: []string{"/no/such/file"}},
		{name: "nothing", code: exitUsage, stderr: []string{"give either --config FILE or --cluster FILE"}},
		{name: "two", args: []string{"-config", goodFile, "-cluster", clusterFile}, code: exitUsage,
			stderr: []string{"give either --config FILE or --cluster FILE"}},
		{name: "bare argument", args: []string{goodFile}, code: exitUsage,
			stderr: []string{"is not a flag: give the configuration with --config FILE",
				"usage: zrlmpid --config FILE"}},
		{name: "unknown flag", args: []string{"-verbose"}, code: exitUsage,
			stderr: []string{"there is no flag --verbose", "usage: zrlmpid --config FILE"}},
		{name: "misspelt flag", args: []string{"--confg", "x"}, code: exitUsage,
			stderr: []string{`there is no flag --confg (did you mean "--config"?)`}},
		{name: "no value", args: []string{"-config"}, code: exitUsage,
			stderr: []string{"--config needs a value: --config FILE"}},
		{name: "useless flag", args: []string{"-config", goodFile, "-standins"}, code: exitUsage,
			stderr: []string{"--standins: only valid with --cluster"}},
		{name: "watch of standard input", stdin: good, args: []string{"-config", "-", "-watch"}, code: exitUsage,
			stderr: []string{"--watch: standard input cannot be read a second time"}},
		{name: "check and print", args: []string{"-config", goodFile, "-check-config", "-print-config"},
			code: exitUsage, stderr: []string{"not both"}},
		{name: "level", args: []string{"-config", goodFile, "-log-level", "loud"}, code: exitUsage,
			stderr: []string{`zrlmpid: --log-level: "loud" is not known`}},
		{name: "socket", args: []string{"-config", goodFile, "-control", "here"}, code: exitUsage,
			stderr: []string{`zrlmpid: --control: "here" is not an absolute path`}},
		{name: "HTTP", args: []string{"-config", goodFile, "-http", "here"}, code: exitUsage,
			stderr: []string{`zrlmpid: --http: "here" is not an address with a port`}},
		{name: "version", args: []string{"-version"}, stdout: []string{"zrlmpid " + version.String()}},
		{name: "help", args: []string{"-help"},
			stderr: []string{"Exit codes: 0", "--check-config", "--addresses pool"}},
		{name: "cluster", args: []string{"-cluster", clusterFile, "-addresses", pool, "-standins", "-kernel", "sink",
			"-print-config"},
			stdout: []string{"address: 127.77.0.1:2718\n", "run: host", "run: standin", "kernel: sink"}},
		{name: "the sample", args: []string{"--cluster", "../../deploy/cluster.json", "--addresses",
			"10.12.0.1,10.12.200.1-10.12.200.3", "--print-config"},
			stdout: []string{"address: 10.12.0.1:2718\n", "run: host", "address: 10.12.200.3:2718\n", "peer: fpga",
				"upstream: flat", "# limits.attached_bytes on this host: ",
				"# link of rank 0 to rank 1: {profile: cloudfpga, transport: udp, path: kernel, on_partial: error, ",
				"deadlines: {clear: 0s, ack: 6.725s, data: 10s}, warn_after: 10s}\n"}},
		{name: "hosts", args: []string{"-cluster", both, "-addresses", pool, "-host", "0", "-fpga", "1", "-standins",
			"-check-config"},
			stdout: []string{"2 of 2 ranks are local"}},
		{name: "bad hosts", args: []string{"-cluster", both, "-host", "1,x"}, code: exitUsage,
			stderr: []string{`"x" is not a rank`}},
		{name: "no addresses", args: []string{"-cluster", clusterFile}, code: exitUsage,
			stderr: []string{"a cluster file has no addresses", "--addresses"}},
		{name: "bad pool", args: []string{"-cluster", clusterFile, "-addresses", "1-2"}, code: exitUsage,
			stderr: []string{"1-2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, stdout, stderr := zrlmpid(t, tt.stdin, tt.args...)
			if code != tt.code {
				t.Errorf("exit code %d, want %d\n%s", code, tt.code, stderr)
			}
			for _, want := range tt.stdout {
				if !strings.Contains(stdout, want) {
					t.Errorf("%q is not on standard output:\n%s", want, stdout)
				}
			}
			for _, want := range tt.stderr {
				if !strings.Contains(stderr, want) {
					t.Errorf("%q is not on standard error:\n%s", want, stderr)
				}
			}
			if tt.code != exitOK && stdout != "" {
				t.Errorf("on standard output: %s", stdout)
			}
		})
	}
}

// TestPrintConfigAnySession checks that a printed configuration contains no path that depends on the session.
func TestPrintConfigAnySession(t *testing.T) {
	t.Setenv("XDG_RUNTIME_DIR", "/run/user/7")
	const file = "ranks: [{rank: 0, address: 127.0.0.1, run: host}]\n"
	if code, out, errs := zrlmpid(t, file, "-config", "-", "-print-config"); code != exitOK ||
		!strings.Contains(out, "control:\n  mode: ") || strings.Contains(out, "/run/user/7") {
		t.Errorf("exit code %d\n%s%s", code, out, errs)
	}
}

// TestPrintConfigDefaults checks that the comments have each default that the configuration leaves out, and only the
// options that a link uses.
func TestPrintConfigDefaults(t *testing.T) {
	const file = `defaults: {profile: extended}
ranks:
- {rank: 0, address: 127.0.0.1, run: host}
- {rank: 1, address: 127.0.0.2, peer: software, link: {warn_after: 3s}}
- {rank: 2, address: 10.0.0.2, peer: software}
- {rank: 3, address: 10.0.0.3, peer: fpga, link: {profile: v0.9}}
limits: {attached_bytes: 256MiB}
`
	code, out, errs := zrlmpid(t, file, "-config", "-", "-print-config")
	for _, want := range []string{
		"\n  attached_bytes: 256MiB\n", "\n# limits.attached_bytes on this host: 256MiB\n",
		"\n# link of rank 0 to rank 1: {profile: extended, transport: shm, eager_limit: 16KiB, eager_credit: 1MiB, " +
			"deadlines: {ack: 10s}, warn_after: 3s}\n",
		"\n# link of rank 0 to rank 2: {profile: extended, transport: udp, path: kernel, max_datagram: 65504, " +
			"eager_limit: 64KiB, eager_credit: 1MiB, deadlines: {ack: 10s}, warn_after: 10s}\n",
		"\n# link of rank 0 to rank 3: {profile: v0.9, transport: udp, path: kernel, on_partial: error, " +
			"max_message_words: 0, max_datagram: 1416, ",
	} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit code %d, there is no %q in\n%s%s", code, want, out, errs)
		}
	}
}

func TestEnvironment(t *testing.T) {
	text, _, _ := testConfig(t)
	t.Setenv(config.EnvLogLevel, "error")
	t.Setenv(config.EnvControlSocket, "/tmp/from-env.sock")
	t.Setenv(config.EnvHTTPListen, "127.0.0.1:1")
	_, out, _ := zrlmpid(t, text, "-config", "-", "-print-config")
	if !strings.Contains(out, "level: error") || !strings.Contains(out, "socket: /tmp/from-env.sock") ||
		!strings.Contains(out, "listen: 127.0.0.1:1\n") {
		t.Errorf("the environment does not override the file:\n%s", out)
	}
	_, out, _ = zrlmpid(t, text, "-config", "-", "-print-config", "-log-level", "debug", "-control", "/tmp/flag.sock",
		"-http", "")
	if !strings.Contains(out, "level: debug") || !strings.Contains(out, "socket: /tmp/flag.sock") ||
		!strings.Contains(out, "listen: \"\"\n") {
		t.Errorf("flags do not override the environment:\n%s", out)
	}
	if code, again, errs := zrlmpid(t, out, "-config", "-", "-print-config", "-log-level", "debug", "-control",
		"/tmp/flag.sock", "-http", ""); code != exitOK || again != out {
		t.Errorf("what is printed does not read as the same:\n%s%s", again, errs)
	}
}

// readyWriter is a standard output that sends each line written on a channel.
type readyWriter struct{ lines chan string }

func (w readyWriter) Write(p []byte) (int, error) {
	w.lines <- string(p)
	return len(p), nil
}

func TestRun(t *testing.T) {
	text, _, socket := testConfig(t)
	for _, format := range []string{"console", "json"} {
		ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
		defer cancel()
		out := readyWriter{make(chan string, 10)}
		var log bytes.Buffer
		code := make(chan int, 1)
		go func() {
			code <- run(ctx, []string{"-config", "-"}, strings.NewReader(text+"log: {format: "+format+"}\n"), out, &log)
		}()
		if line := <-out.lines; !strings.HasPrefix(line, "ready rank 0 host 127.") ||
			!strings.HasSuffix(line, "control "+socket+", attach "+config.AttachSocketFor(socket)+", http none\n") {
			t.Errorf("%q", line)
		}
		client := control.NewClient(socket)
		s, err := client.Status(ctx)
		client.Close()
		if err != nil || s.Config != "standard input" || len(s.Ranks) != 2 {
			t.Errorf("%+v, %v", s, err)
		}
		cancel()
		if c := <-code; c != exitOK {
			t.Errorf("exit code %d", c)
		}
		if len(out.lines) != 0 {
			t.Errorf("more on standard output: %q", <-out.lines)
		}
		if json := strings.HasPrefix(log.String(), "{"); json != (format == "json") ||
			!strings.Contains(log.String(), "zrlmpid ready") {
			t.Errorf("format %s:\n%s", format, log.String())
		}
		if _, err := os.Lstat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the control socket is left: %v", err)
		}
	}
}

// TestForABugReport: a daemon reports the absolute path of its configuration and the end of its log.
func TestForABugReport(t *testing.T) {
	text, _, socket := testConfig(t)
	path := file(t, "z.yaml", text)
	t.Chdir(filepath.Dir(path))
	ctx, cancel := context.WithTimeout(context.Background(), testTimeout)
	defer cancel()
	out := readyWriter{make(chan string, 10)}
	code := make(chan int, 1)
	go func() { code <- run(ctx, []string{"--config", "z.yaml"}, nil, out, io.Discard) }()
	<-out.lines
	client := control.NewClient(socket)
	defer client.Close()
	if s, err := client.Status(ctx); err != nil || s.Config != path {
		t.Errorf("configuration %q, %v", s.Config, err)
	}
	s, err := query.Get[control.Support](ctx, client.Handle, query.Request{Kind: query.Support})
	if err != nil || !strings.Contains(s.Log, "zrlmpid ready") || s.Records == nil ||
		s.Records.Directory != strings.TrimSuffix(socket, ".sock")+"-records" {
		t.Errorf("%+v, %v", s, err)
	}
	cancel()
	if c := <-code; c != exitOK {
		t.Errorf("exit code %d", c)
	}
}

func TestPortTaken(t *testing.T) {
	text, addr, _ := testConfig(t)
	conn, err := net.ListenPacket("udp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	code, stdout, stderr := zrlmpid(t, text, "-config", "-")
	if code != exitFailure || stdout != "" || !strings.Contains(stderr, "zrlmpid: rank 1 cannot listen on udp "+addr) {
		t.Errorf("%d %q %q", code, stdout, stderr)
	}
}

// TestExitCodes: a missing address may appear later, which the error explains under systemd. If only a change of the
// configuration can fix the error, the exit code is 2.
func TestExitCodes(t *testing.T) {
	good, addr, _ := testConfig(t)
	late := strings.Replace(good, addr, "192.0.2.1:2718", 1)
	tls := strings.Replace(good, "run: standin", "run: standin, peer: software", 1) +
		"defaults: {profile: extended, transport: tcp}\ntls: {certificate: /no/such/cert.pem, key: /no/such/key.pem, authority: /no/such/ca.pem}\n"
	for _, tt := range []struct {
		name, text string
		args       []string
		systemd    bool
		code       int
		says       string
	}{
		{name: "late address", text: late, code: exitFailure, says: "this machine does not have that address"},
		{name: "late address, systemd", text: late, systemd: true, code: exitFailure,
			says: "zrlmpid.service restarts it every second"},
		{name: "TLS file", text: tls, args: []string{"--check-config"}, code: exitFailure, says: "/no/such/cert.pem"},
		{name: "configuration", text: good + "log: {level: loud}\n", code: exitUsage, says: "log.level"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pid := 0
			if tt.systemd {
				pid = os.Getpid()
			}
			t.Setenv("SYSTEMD_EXEC_PID", fmt.Sprint(pid))
			code, _, stderr := zrlmpid(t, tt.text, append([]string{"--config", "-"}, tt.args...)...)
			if code != tt.code || !strings.Contains(stderr, tt.says) {
				t.Errorf("exit code %d, want %d:\n%s", code, tt.code, stderr)
			}
			if !tt.systemd && strings.Contains(stderr, "zrlmpid.service") {
				t.Errorf("without systemd:\n%s", stderr)
			}
		})
	}
	if code := exitCode(&bindfault.ListenError{Err: syscall.EACCES}); code != exitUsage {
		t.Errorf("a port that needs a privilege: exit code %d", code)
	}
}
