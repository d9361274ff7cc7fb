package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon"
	"github.com/zrlmpi/zrlmpid/daemon/daemontest"
	"github.com/zrlmpi/zrlmpid/internal/testkit/loopback"
)

// TestPingFailedKernel checks that ping skips the further sizes of a rank whose kernel failed.
func TestPingFailedKernel(t *testing.T) {
	// The program receives one word from rank 0 and exits without an echo.
	program := filepath.Join(t.TempDir(), "fail")
	script := "#!/bin/sh\nprintf '\\001\\020\\000\\000\\000\\000\\000\\000\\000'\nhead -c 9 >/dev/null\nexit 3\n"
	if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	network := loopback.Network(t)
	socket := daemontest.Start(t, daemon.Options{}, "",
		fmt.Sprintf("address: %s1, run: host", network),
		fmt.Sprintf("address: %s2, run: standin, kernel: \"exec:%s\"", network, program)).Socket
	code, out, errs := zrlctl(t, "", "ping", "1", "--words", "1,2,3", "--timeout", "20s", "--socket", socket)
	if code != exitFailure || strings.Count(out, "0/1") != 1 || !strings.Contains(errs, "the kernel of rank 1 failed") ||
		strings.Contains(errs, "2 words") {
		t.Errorf("code %d\n%s%s", code, out, errs)
	}
}
