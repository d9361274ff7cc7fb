package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/doctor"
)

// TestDoctor: the exit code says whether something is wrong, of a running daemon and of a file.
func TestDoctor(t *testing.T) {
	socket := startDaemon(t)
	code, stdout, stderr := zrlctl(t, "", "doctor", "--socket", socket, "--json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if want := map[bool]int{true: exitFailure, false: exitOK}[report.Wrong()]; code != want {
		t.Errorf("exit code %d, want %d: %s", code, want, stdout)
	}
	for _, c := range report.Results {
		if c.ID == "port" && c.Verdict != doctor.Right {
			t.Errorf("%+v", c)
		}
	}

	file := filepath.Join(t.TempDir(), "double.yaml")
	text := "control: {socket: \"\"}\nranks:\n  - {rank: 0, address: \"127.0.0.1:4000\", run: host}\n  - {rank: 1, address: \"127.0.0.1:4000\", peer: software}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args           string
		code           int
		stdout, stderr string
	}{
		{"doctor --config " + file, exitFailure, "127.0.0.1:4000 is already the address of rank 0", ""},
		{"doctor --config " + file + ".none", exitUsage, "", "no such file"},
		{"doctor --socket " + file + ".sock", exitUnreachable, "", "without a daemon, give its configuration with --config"},
	} {
		code, stdout, stderr := zrlctl(t, "", strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}

// TestBundle: the output lists what the file has, and what is missing.
func TestBundle(t *testing.T) {
	socket := startDaemon(t)
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, stdout, stderr := zrlctl(t, "", "bundle", "--socket", socket, "-o", file)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"versions.txt", "status of the daemon", "configuration with all defaults: the configuration cannot be read", "HTTP is disabled", "facts.json", "packets.pcapng", "last packets of the daemon's ranks\n", file} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output does not have %q:\n%s", want, stdout)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}
