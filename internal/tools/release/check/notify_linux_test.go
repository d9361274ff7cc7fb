package check

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestUnitNotify checks that the unit has Type=notify and a watchdog, and that the daemon sends the notifications that
// these require.
func TestUnitNotify(t *testing.T) {
	needsRoot(t, "what the daemon notifies systemd of")
	list := exec.Command("go", "list", "-deps", "./cmd/zrlmpid")
	list.Dir = repository
	if out, err := list.Output(); err != nil || !strings.Contains(string(out), "go-systemd/v22/daemon") {
		missing(t, "what the daemon notifies systemd of",
			"the daemon does not use package go-systemd/daemon, and the unit is Type=notify")
	}
	who := account{uid: 61234, gid: 61235}
	root := emptyRoot(t, who)
	copyFile(t, filepath.Join(root, "etc/zrlmpid/zrlmpid.yaml"), from("deploy/packaging/zrlmpid.yaml"), 0o644)
	path := filepath.Join(root, "run/notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := os.Chmod(path, 0o777); err != nil {
		t.Fatal(err)
	}
	// expect waits for a notification from the daemon. It skips other notifications that come before it.
	expect := func(want string) {
		t.Helper()
		if err := conn.SetReadDeadline(time.Now().Add(testTimeout)); err != nil {
			t.Fatal(err)
		}
		var all []string
		buf := make([]byte, 4096)
		for {
			n, err := conn.Read(buf)
			if err != nil {
				t.Fatalf("no %s, but %q: %v", want, all, err)
			}
			all = append(all, string(buf[:n]))
			for line := range strings.Lines(string(buf[:n])) {
				if strings.TrimSpace(line) == want {
					return
				}
			}
		}
	}
	env := []string{"NOTIFY_SOCKET=/run/notify", "WATCHDOG_USEC=200000"}
	s := start(t, newNetwork(t), root, who, "", env, strings.Fields(readUnit(t)["Service"]["ExecStart"][0])...)
	expect("READY=1")
	expect("WATCHDOG=1")
	expect("WATCHDOG=1")
	if err := s.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	expect("RELOADING=1")
	expect("READY=1")
	s.stops()
	expect("STOPPING=1")
}
