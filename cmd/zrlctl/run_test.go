//go:build unix

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"
)

func TestRun(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           []string
		stdin          string
		code           int
		stdout, stderr string // regular expressions
	}{
		{args: []string{"-n", "2", "-l", "sh", "-c", "echo $PMI_RANK of $PMI_SIZE"},
			stdout: `^\[\d\] \d of 2\n\[\d\] \d of 2\n$`},
		{args: []string{"-n", "1", "sh", "-c", "echo a $PMI_SIZE", ":", "-n", "1", "sh", "-c", "true", ":", "--ranks=2",
			"true"}, stdout: `^a 4\n$`},
		{args: []string{"-np", "2", "--env", "A=-np", "echo", "-np", ":", "-np", "1", "echo", "-np"},
			stdout: `^-np\n-np\n-np\n$`},
		{args: []string{"-n1", "cat", ":", "-n2", "cat"}, stdin: "for rank 0", stdout: `^for rank 0$`},
		{args: []string{"-n", "3", "sh", "-c", "exit $((PMI_RANK == 1 ? 21 : 0))"}, code: 21,
			stderr: `^zrlctl: rank 1 \(sh\) ended with exit code 21`},
		{args: []string{"-n", "1", "sh", "-c", "kill -9 $$"}, code: 137,
			stderr: `^zrlctl: rank 0 \(sh\) was ended by a signal: killed\n$`},
		{args: []string{"-n", "1", "./none"}, code: 127,
			stderr: `rank 0 \(./none\) could not be started: .*no such file`},
		{args: []string{"-n", "1", "/"}, code: 126, stderr: `rank 0 \(/\) could not be started: .*is a directory`},
		{args: []string{"--json", "-n", "1", "false"}, code: 1, stdout: `"exit":1`,
			stderr: "ended with exit code 1"},
		{args: []string{self}, code: 2, stderr: `the number of ranks is missing: give -n N`},
		{args: []string{"-n", "2"}, code: 2, stderr: "there is no program"},
		{args: []string{"-n", "-1", self}, code: 2, stderr: "at least 1"},
		{args: []string{"-n", "9999", self}, code: 2, stderr: "at most 4096"},
		{args: []string{"-n", "1", "true", ":", "true"}, code: 2, stderr: "the number of ranks is missing"},
		{args: []string{"-n", "1", "true", ":"}, code: 2, stderr: "there is no program"},
		{args: []string{"-n", "1", "true", ":", "-n"}, code: 2, stderr: "after a colon"},
		{args: []string{"-n", "1", "true", ":", "-n", "x", "true"}, code: 2,
			stderr: `after a colon: invalid argument "x" for "-n, --ranks"`},
		{args: []string{"-n", "1", "true", ":", "-n", "1"}, code: 2, stderr: "there is no program"},
		{args: []string{"-n", "1", "--env", "=x", "true"}, code: 2, stderr: "--env \"=x\": write NAME=VALUE"},
		{args: []string{"-n", "1", "--env", "A=1", "sh", "-c", "echo $A $PWD"}, stdout: "^1 ."},
		{args: []string{"-n", "1", "true", ":", "-n", "1", "--wdir", "/", "--env", "A=2", "sh", "-c", "echo $A $PWD"},
			stdout: "^2 /\n$"},
		{args: []string{"-n", "1", "--bind-to", "socket", "true"}, code: 2,
			stderr: "--bind-to socket: must be core or none"},
	} {
		code, stdout, stderr := zrlctl(t, tt.stdin, append([]string{"run"}, tt.args...)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}

// TestRunCluster: processes and stand-ins are ranks of the same job. They are ordered as in the cluster file or the
// configuration.
func TestRunCluster(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	place := loopback.Network(t)
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	file := write("cluster.json", `{"nodes": {"cpu": [0, 3], "fpga": [1, 2]}}`)
	both := write("both.json", `{"nodes": {"cpu": [0, 1], "fpga": [0, 1]}}`)
	configured := write("job.yaml", fmt.Sprintf(`
ranks:
  - {rank: 0, address: %s21, run: host}
  - {rank: 1, address: %s22, run: standin}
  - {rank: 2, address: %s23, peer: fpga}
`, place, place, place))
	taken, err := net.ListenPacket("udp", place+"44:2718")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	pool := func(n int) string { return fmt.Sprintf("--addresses=%s%d-%s%d", place, n, place, n+9) }
	for _, tt := range []struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		{args: []string{"--cluster", file, pool(1), "--stand-in", "echo", "-l", self, "rank"},
			stdout: `(?s)\[0\] rank 0 has 1 of rank 1\n.*\[0\] rank 0 has 2 of rank 2\n`},
		{args: []string{"--cluster", file, pool(1), "--stand-in=echo", "-n", "1", self, "rank", ":", "-n", "1", self,
			"rank"},
			stdout: `(?s)rank 3 has 3 of rank 0\n.*|rank 0 has 3 of rank 3\n`},
		{args: []string{"--cluster", file, pool(1), "--stand-in=echo", self, "rank"},
			stdout: `(?s)rank 3 has 1 of rank 1\n.*rank 3 has 2 of rank 2\n`},
		{args: []string{"--cluster", file, pool(1), "--fpga-timeout=100ms", self, "rank"}, code: 1,
			stderr: "(?s)from which no packet was ever received"},
		{args: []string{"--cluster", file, pool(1), "--fpga-timeout=50ms", "--stand-in=exec:false", "sleep", "1000"},
			code:   1,
			stderr: `(?s)zrlctl: kernel exec:false of stand-in [12]: every call has failed for .*, most recently: program ended: exit status 1\n`},
		{args: []string{"--cluster", file, pool(1), "--fpga-timeout=-1s", "true"}, code: 2,
			stderr: "--fpga-timeout -1s: give a time, or 0s for none"},
		{args: []string{"--cluster", both, pool(1), "--stand-in=echo", "--fpga=1", self, "rank"},
			stdout: `^rank 0 has 1 of rank 1\n$`},
		{args: []string{"--config", configured, "--stand-in=echo", self, "rank"},
			stdout: `^rank 0 has 1 of rank 1\nrank 0 has 2 of rank 2\n$`},
		{args: []string{"--cluster", file, pool(1), "--stand-in=echo", "-l", "sh", "-c", "exit $((PMI_RANK * 7))"},
			code:   7,
			stderr: `^zrlctl: rank 3 \(sh\) ended with exit code 7`},
		{args: []string{"--cluster", file, pool(41), "--stand-in=echo", "true"}, code: 1,
			stderr: `^zrlctl: rank 3 cannot listen on udp .*44:2718: .*\n$`},
		{args: []string{"--cluster", file, pool(43), "--stand-in=echo", "true"}, code: 1,
			stderr: `^zrlctl: rank 1 cannot listen on udp .*44:2718: .*\n$`},
		{args: []string{"--cluster", file, "--addresses=192.0.2.71-192.0.2.79", "true"}, code: 1,
			stderr: `^zrlctl: rank 0 cannot listen on udp 192.0.2.71:2718: this machine does not have that address.*\n$`},
		{args: []string{"--cluster", file, pool(1), "--stand-in=echo", "-n3", "true"}, code: 2,
			stderr: `^zrlctl: the cluster has 2 CPU ranks \[0 3\], but the programs have 3: .*\n$`},
		{args: []string{"--cluster", file, "true"}, code: 2, stderr: "has no addresses"},
		{args: []string{"--cluster", file, "--config", configured, "true"}, code: 2, stderr: "not both"},
		{args: []string{"--config", configured, "--fpga=1", "true"}, code: 2, stderr: "only valid with --cluster"},
		{args: []string{"--stand-in=echo", "-n1", "true"}, code: 2, stderr: "only valid with --cluster or --config"},
		{args: []string{"--config", configured, "--stand-in=jazz", "true"}, code: 2, stderr: "unknown kernel"},
		{args: []string{"--cluster", "none.json", "true"}, code: 2, stderr: "none.json: no such file"},
		{args: []string{"--config", "none.yaml", "true"}, code: 2, stderr: "none.yaml: no such file"},
		{args: []string{"--cluster", write("empty.json", `{"nodes": {"fpga": [0, 1]}}`), pool(1), "true"}, code: 2,
			stderr: "all 2 ranks are FPGAs"},
		{args: []string{"--config", write("all.yaml", "ranks:\n  - {rank: 0, address: 127.0.0.1, run: standin, "+
			"kernel: ring}\n"), "true"}, code: 2, stderr: "no rank is for a program"},
	} {
		code, stdout, stderr := zrlctl(t, "", append([]string{"run"}, tt.args...)...)
		if code != tt.code || !regexp.MustCompile(tt.stdout).MatchString(stdout) ||
			!regexp.MustCompile(tt.stderr).MatchString(stderr) {
			t.Errorf("%q: exit code %d, %q, %q", tt.args, code, stdout, stderr)
		}
	}
}
