package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"
)

// fullDisk is a writer that fails after it has accepted room bytes.
type fullDisk struct{ room int }

func (f *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), f.room)
	f.room -= n
	if n < len(b) {
		return n, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.ENOSPC}
	}
	return n, nil
}

// onFullDisk runs a command whose output does not fit on the disk. The command must fail and name the reason exactly
// once.
func onFullDisk(t *testing.T, room int, args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	var errs bytes.Buffer
	code := run(ctx, args, strings.NewReader(""), &fullDisk{room}, &errs)
	if code != exitFailure || strings.Count(errs.String(), "zrlctl: write /dev/stdout: no space left on device") != 1 {
		t.Errorf("zrlctl %s, capacity %d bytes: exit code %d, %q", strings.Join(args, " "), room, code, errs.String())
	}
}

// TestFullDisk: every command fails if its output is incomplete, however much of it was written.
func TestFullDisk(t *testing.T) {
	socket := startDaemon(t)
	replay := "replay " + captures +
		"ref_mpe_echo_1.pcap --as 0 --to 127.0.82.4:2999 --bind 127.0.82.3:0 --timeout 10ms --speed full"
	for _, room := range []int{0, 10} {
		for _, args := range []string{
			"", "version", "completion bash", "completion zsh", "completion fish", "completion powershell",
			"decode " + captures + "ref_ref_pingpong_1.pcap", "decode -x " + captures + "ref_ref_pingpong_1.pcap",
			"analyze " + captures + "ref_ref_pingpong_1.pcap", "analyze " + captures + "ref_ref_late_start.pcap",
			replay,
			"status", "ranks", "ping 1", "send 1 --words 3", "recv 1", "top --count 1",
			"top --count 2 --interval 100ms",
		} {
			onFullDisk(t, room, append([]string{"--socket", socket}, strings.Fields(args)...)...)
		}
	}
	for _, args := range []string{
		"version", "decode " + captures + "ref_ref_pingpong_1.pcap", "analyze " + captures + "ref_ref_pingpong_1.pcap",
		replay,
		"status", "ranks", "ping 1", "send 1 --words 1", "recv 1", "reset 1", "top --count 1",
	} {
		onFullDisk(t, 0, append([]string{"--json", "--socket", socket}, strings.Fields(args)...)...)
	}
	root, _ := newRoot()
	var help func(cmd *cobra.Command)
	help = func(cmd *cobra.Command) {
		onFullDisk(t, 10, append(strings.Fields(cmd.CommandPath())[1:], "--help")...)
		for _, sub := range cmd.Commands() {
			if sub.IsAvailableCommand() {
				help(sub)
			}
		}
	}
	help(root)
}

// TestFullDiskAndFailure: if the command itself has failed before, its error is reported too and determines the exit
// code.
func TestFullDiskAndFailure(t *testing.T) {
	var errs bytes.Buffer
	code := run(t.Context(), []string{"decode", "/no/such/file", "--help=false"}, strings.NewReader(""), &fullDisk{},
		&errs)
	if code != exitUsage || !strings.Contains(errs.String(), "/no/such/file") {
		t.Errorf("exit code %d, %q", code, errs.String())
	}
	o := &output{Writer: &fullDisk{}}
	if _, err := io.WriteString(o, "x"); err == nil {
		t.Fatal("it was written")
	}
	another := errors.New("another")
	if err := o.joinError(another); !errors.Is(err, another) || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("%v", err)
	}
}

// TestFullFile: a command fails if a file cannot be written completely.
func TestFullFile(t *testing.T) {
	const full = "/dev/full"
	if _, err := os.Stat(full); err != nil {
		t.Skip("NO TEST OF FILES ON A FULL DISK: ", err)
	}
	socket := startDaemon(t)
	if code, _, stderr := zrlctl(t, "", "send", "1", "--words", "3", "--socket", socket); code != exitOK {
		t.Fatal(stderr)
	}
	cut := filepath.Join(t.TempDir(), "cut.pcap")
	whole, err := os.ReadFile(captures + "ref_mpe_echo_1000.pcap")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:len(whole)-100], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{
		"decode -o /dev/full " + captures + "ref_ref_pingpong_1.pcap",
		"decode -o /dev/full " + captures + "ref_mpe_echo_1000.pcap",
		"analyze --html /dev/full " + captures + "ref_ref_pingpong_1.pcap",
		"analyze --perfetto /dev/full " + captures + "ref_ref_pingpong_1.pcap",
		"recv 1 --output /dev/full --socket " + socket,
	} {
		code, _, stderr := zrlctl(t, "", strings.Fields(args)...)
		if code != exitFailure || strings.Count(stderr, "write /dev/full: no space left on device") != 1 {
			t.Errorf("zrlctl %s: exit code %d, %q", args, code, stderr)
		}
	}
	if code, _, stderr := zrlctl(t, "", "decode", "-o", full, cut); code != exitUsage ||
		!strings.Contains(stderr, "cut off") || !strings.Contains(stderr, "no space left") {
		t.Errorf("of a recording that is cut off: exit code %d, %q", code, stderr)
	}
	// The readable packets of a truncated recording are written.
	part := filepath.Join(t.TempDir(), "part.pcapng")
	if code, _, stderr := zrlctl(t, "", "decode", "-o", part, cut); code != exitUsage ||
		!strings.Contains(stderr, "cut off") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if code, stdout, stderr := zrlctl(t, "", "analyze", part); !strings.Contains(stdout, "34 packets") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
}
