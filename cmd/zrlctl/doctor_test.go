package main

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
)

// TestDoctor: the exit code reports whether there are problems, both for a running daemon and for a file.
func TestDoctor(t *testing.T) {
	socket := startDaemon(t)
	code, stdout, stderr := zrlctl(t, "", "doctor", "--socket", socket, "--json")
	var report doctor.Report
	if err := json.Unmarshal([]byte(stdout), &report); err != nil {
		t.Fatalf("%v: %s%s", err, stdout, stderr)
	}
	if want := map[bool]int{true: exitFailure, false: exitOK}[report.HasWrong()]; code != want {
		t.Errorf("exit code %d, want %d: %s", code, want, stdout)
	}
	for _, c := range report.Results {
		if c.ID == "port" && c.Verdict != doctor.Right {
			t.Errorf("%+v", c)
		}
	}

	file := filepath.Join(t.TempDir(), "double.yaml")
	text := "control: {socket: \"\"}\nranks:\n  - {rank: 0, address: \"127.0.0.1:4000\", run: host}\n  - {rank: 1, " +
		"address: \"127.0.0.1:4000\", peer: software}\n"
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
		{"doctor --socket " + file + ".sock", exitUnreachable, "",
			"without a daemon, give its configuration with --config"},
	} {
		code, stdout, stderr := zrlctl(t, "", strings.Fields(tt.args)...)
		if code != tt.code || !strings.Contains(stdout, tt.stdout) || !strings.Contains(stderr, tt.stderr) {
			t.Errorf("%s: exit code %d\n%s%s", tt.args, code, stdout, stderr)
		}
	}
}

// TestBundle: the output lists the contents of the bundle and the parts that are missing.
func TestBundle(t *testing.T) {
	tail := func() []byte { return []byte("something went wrong\n") }
	socket := daemontest.Start(t, daemon.Options{LogTail: tail}, "", `address: "127.77.3.1:4000", run: host`).Socket
	file := filepath.Join(t.TempDir(), "bundle.tar.gz")
	code, stdout, stderr := zrlctl(t, "", "bundle", "--socket", socket, "-o", file)
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for _, want := range []string{"versions.txt", "status of the daemon",
		"configuration with all defaults: the configuration cannot be read", "HTTP is disabled", "facts.json",
		"packets.pcapng", "last packets of the daemon's ranks\n",
		"end of the daemon's log", "list of the failure records", file} {
		if !strings.Contains(stdout, want) {
			t.Errorf("the output does not have %q:\n%s", want, stdout)
		}
	}
	for name, want := range map[string]string{
		"log.txt": "something went wrong\n", "records.txt": strings.TrimSuffix(socket, ".sock") + "-records: 0 files",
	} {
		if got := bundled(t, file, name); !strings.Contains(got, want) {
			t.Errorf("%s: %q does not have %q", name, got, want)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestBundleOfJob(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "none.sock")
	code, _, stderr := zrlctl(t, "", "bundle", "--socket", socket)
	if code != exitUnreachable || !strings.Contains(stderr, "a bundle cannot contain a job: for one, send the output of") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// bundled returns the contents of a file in a bundle.
func bundled(t *testing.T, bundle, name string) string {
	t.Helper()
	f, err := os.Open(bundle)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	zip, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(zip)
	for {
		header, err := archive.Next()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if path.Base(header.Name) == name {
			text, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

// TestBundleWithoutDaemon: without a daemon, the bundle contains the configuration, which is named by a relative path,
// and a list of the records in the configured directory.
func TestBundleWithoutDaemon(t *testing.T) {
	dir := t.TempDir()
	records := filepath.Join(dir, "records")
	text := fmt.Sprintf("control: {socket: %q}\nrecord: {spool: {directory: %q}}\n"+
		"ranks: [{rank: 0, address: \"127.0.0.1:4000\", run: host}]\n", filepath.Join(dir, "c.sock"), records)
	err := errors.Join(os.WriteFile(filepath.Join(dir, "z.yaml"), []byte(text), 0o600), os.Mkdir(records, 0o700),
		os.WriteFile(filepath.Join(records, "one.pcapng"), make([]byte, 12), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	code, stdout, stderr := zrlctl(t, "", "bundle", "--config", "z.yaml", "-o", "bundle.tar.gz")
	if code != exitOK || strings.Contains(stdout, "the configuration cannot be read") ||
		!strings.Contains(stdout, "log of zrlmpid.service") {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	if got := bundled(t, "bundle.tar.gz", "records.txt"); !strings.Contains(got,
		"12 one.pcapng\n"+records+": 1 files, 12 bytes") {
		t.Errorf("%q", got)
	}
}
