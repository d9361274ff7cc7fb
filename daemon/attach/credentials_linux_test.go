package attach

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

// TestOtherUser checks that the kernel reports a program's user, and that each rank has its own list of users
// and groups.
func TestOtherUser(t *testing.T) {
	needs.Root(t, "programs of other users", "can be another user")
	const user, group, extra = 54321, 54322, 54323
	me, none := Access{UIDs: []int{user}}, Access{}
	for _, tt := range []struct {
		name      string
		zero, two Access // for ranks 0 and 2
		rank      int
		want      string
	}{
		{"nobody", none, none, wire.AnyRank, "user 54321 (group 54322) may not attach to any rank of the daemon"},
		{"user", me, none, 0, "attached"},
		{"group", Access{GIDs: []int{group}}, none, 0, "attached"},
		{"supplementary group", Access{GIDs: []int{extra}}, none, 0, "attached"},
		{"others", Access{UIDs: []int{group}, GIDs: []int{user}}, none, 0, "may not attach"},
		{"another rank", none, me, 0, "user 54321 (group 54322) may not attach to rank 0 of the daemon, which runs " +
			"as user 0: add the user or one of its groups to allow of rank 0"},
		{"any rank", none, me, wire.AnyRank, "attached"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := serve(t, newWorld(3, 0, 2),
				Options{Access: func(rank int) Access { return map[int]Access{0: tt.zero, 2: tt.two}[rank] }})
			dir := filepath.Dir(h.socket)
			// The other user needs access to the socket and to the program.
			for _, path := range []string{dir, h.socket} {
				if err := os.Chmod(path, 0o777); err != nil {
					t.Fatal(err)
				}
			}
			program := filepath.Join(dir, "program")
			copyFile(t, program, os.Args[0])
			cmd := exec.Command(program, strconv.Itoa(tt.rank))
			cmd.Dir = dir
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: group,
				Groups: []uint32{group, extra}}}
			said := startChild(t, cmd, h.socket)
			if !strings.Contains(said, tt.want) {
				t.Errorf("%q, want %q", said, tt.want)
			}
			if list := h.server.AttachedPrograms(); tt.want == "attached" &&
				(len(list) != 1 || list[0].UID != user || list[0].GID != group || list[0].PID != cmd.Process.Pid) {
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
