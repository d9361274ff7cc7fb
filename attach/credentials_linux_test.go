package attach

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestOtherUser: the kernel says who a program is, and by whom it is let in.
func TestOtherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	const user, group, extra = 54321, 54322, 54323
	for _, tt := range []struct {
		name   string
		access Access
		want   string
	}{
		{"nobody", Access{}, "user 54321 (group 54322) may not attach"},
		{"user", Access{UIDs: []int{user}}, "attached"},
		{"group", Access{GIDs: []int{group}}, "attached"},
		{"supplementary group", Access{GIDs: []int{extra}}, "attached"},
		{"others", Access{UIDs: []int{group}, GIDs: []int{user}}, "may not attach"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := serve(t, newWorld(2, 0), Options{Access: tt.access})
			dir := filepath.Dir(h.socket)
			// The other user needs the socket, and the program itself.
			for _, path := range []string{dir, h.socket} {
				if err := os.Chmod(path, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			program := filepath.Join(dir, "program")
			copyFile(t, program, os.Args[0])
			cmd := exec.Command(program)
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group, Groups: []uint32{group, extra}}}
			sendQueue := startChild(t, cmd, h.socket)
			if !strings.Contains(sendQueue, tt.want) {
				t.Errorf("%q, want %q", sendQueue, tt.want)
			}
			if list := h.server.Attached(); tt.want == "attached" && (len(list) != 1 || list[0].UID != user || list[0].GID != group || list[0].PID != cmd.Process.Pid) {
				t.Errorf("%+v", list)
			}
			cmd.Process.Kill()
			cmd.Wait()
		})
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err == nil {
		_, err = io.Copy(out, in)
	}
	if err == nil {
		err = out.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
}
