package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/deploy/cosim"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestRunTrace: the recording of a job contains the messages between all of its ranks.
func TestRunTrace(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, cluster := filepath.Join(dir, "job.pcapng"), filepath.Join(dir, "cluster.json")
	if err := os.WriteFile(cluster, []byte(`{"nodes": {"cpu": [0, 2], "fpga": [1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := loopback.Network(t)
	code, stdout, stderr := zrlctl(t, "", "run", "--cluster", cluster, "--addresses", addr+"1-"+addr+"3",
		"--stand-in=echo", "--trace", file, self, "rank")
	if strings.Contains(stderr, "CAP_NET_RAW") {
		needs.Missing(t, "a trace of a job", "packet sockets are not permitted")
	}
	if code != 0 {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = zrlctl(t, "", "decode", file)
	for _, want := range []string{": SEND_REQUEST 0→1 ", ": DATA 1→0 ", ": DATA 0→2 SEND_INT #",
		": DATA 2→0 SEND_INT #"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %s, and no %q in\n%s", code, stderr, want, stdout)
		}
	}
	if code, _, stderr := zrlctl(t, "", "run", "-n", "1", "--trace", filepath.Join(dir, "none", "job.pcapng"),
		"true"); code != exitFailure || !strings.HasPrefix(stderr, "zrlctl: --trace: open ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestRunTraceCycles: the recording contains the simulation cycle of each packet from or to a simulated role.
func TestRunTraceCycles(t *testing.T) {
	const what = "a trace of a job with a role in simulation"
	needs.Program(t, what, "make", "make")
	needs.Program(t, what, "g++", "g++")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	role, file, cluster := filepath.Join(dir, "role"), filepath.Join(dir, "job.pcapng"),
		filepath.Join(dir, "cluster.json")
	if _, err := cosim.Write(role, "hls", "/nowhere"); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("make", "-C", role, "role").CombinedOutput(); err != nil {
		t.Fatalf("make: %v\n%s", err, out)
	}
	if err := os.WriteFile(cluster, []byte(`{"nodes": {"cpu": [0, 2], "fpga": [1]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	addr := loopback.Network(t)
	code, stdout, stderr := zrlctl(t, "", "run", "--cluster", cluster, "--addresses", addr+"1-"+addr+"3", "--stand-in",
		"rtl:"+role+"/role", "--trace", file, self, "rank", "0")
	if strings.Contains(stderr, "CAP_NET_RAW") {
		needs.Missing(t, what, "packet sockets are not permitted")
	}
	if code != 0 {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	src, err := capture.Options{}.NewReader(f, file)
	if err != nil {
		t.Fatal(err)
	}
	simulated, others := 0, 0
	last := pcapng.Cycle{Rank: 1, Simulation: 1}
	for u := (pcapng.Unit{}); ; {
		if err := src.Next(&u); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if role := addr + "2"; u.Src.Addr().String() != role && u.Dst.Addr().String() != role {
			if others++; len(u.Comments) != 0 {
				t.Errorf("packet %d between hosts has comments %q", u.Packet, u.Comments)
			}
			continue
		}
		if simulated == 0 && len(u.Comments) == 0 {
			continue // recorded before the simulation runs
		}
		simulated++
		if len(u.Comments) != 1 {
			t.Fatalf("packet %d has comments %q", u.Packet, u.Comments)
		}
		c, ok := pcapng.ParseCycle(u.Comments[0])
		if !ok || c.Rank != last.Rank || c.Simulation != last.Simulation || c.Cycle < last.Cycle {
			t.Errorf("packet %d has %q after %q", u.Packet, u.Comments[0], last)
		}
		last = c
	}
	// The message to the role and its echo have four packets each. The first packet may be recorded before the
	// simulation runs.
	if simulated < 7 || others == 0 || last.Cycle < 16 {
		t.Errorf("%d packets of the role, the last at %q, and %d others", simulated, last, others)
	}
}
