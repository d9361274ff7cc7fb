package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestRunTrace: the recording of a job has the messages between all of its ranks.
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
	addr := fmt.Sprintf("127.%d.%d.", 100+rand.IntN(100), rand.IntN(250))
	code, stdout, stderr := zrlctl(t, "", "run", "--cluster", cluster, "--addresses", addr+"1-"+addr+"3", "--stand-in=echo", "--trace", file, self, "rank")
	if strings.Contains(stderr, "CAP_NET_RAW") {
		needs.Missing(t, "a trace of a job", "packet sockets are not permitted")
	}
	if code != 0 {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, stdout, stderr = zrlctl(t, "", "decode", file)
	for _, want := range []string{": SEND_REQUEST 0→1 ", ": DATA 1→0 ", ": DATA 0→2 SEND_INT #", ": DATA 2→0 SEND_INT #"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, %s, and no %q in\n%s", code, stderr, want, stdout)
		}
	}
	if code, _, stderr := zrlctl(t, "", "run", "-n", "1", "--trace", filepath.Join(dir, "none", "job.pcapng"), "true"); code != exitFailure || !strings.HasPrefix(stderr, "zrlctl: --trace: open ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
