package daemon

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/mpe/attach"
)

// as calls f on a thread that has other credentials and exits afterwards. A socket that f connects in its own
// goroutine has these credentials.
func as(t *testing.T, uid, gid int, f func()) {
	t.Helper()
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked, so that nothing else uses the thread
		_, _, e1 := unix.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0)
		_, _, e2 := unix.RawSyscall(unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid))
		_, _, e3 := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if e1|e2|e3 != 0 {
			done <- fmt.Errorf("other credentials: %v, %v, %v", e1, e2, e3)
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// TestAllow checks that users can attach only to their own ranks, and that they can read the status or do more
// as configured. A reload takes effect on both.
func TestAllow(t *testing.T) {
	needs.Root(t, "requests of other users", "can be another user")
	const alice, bob = 54321, 54322
	dir, err := os.MkdirTemp("", "allow")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	c := newCluster(t)
	c.socket = filepath.Join(dir, "c.sock")
	text := func(zero, one, control string) string {
		return strings.Replace(c.yaml("http: {listen: \"127.0.0.1:0\"}", "run: host, allow: {users: ["+zero+"]}",
			"run: host, allow: {groups: ["+one+"]}", "run: standin"),
			"control: {", "control: {mode: 0666, allow: {users: ["+control+"]}, ", 1)
	}
	r := start(t, text("54321", "54322", "54321"))
	socket := config.AttachSocketFor(c.socket)
	attached := func(uid, rank int) (got int, err error) {
		as(t, uid, uid, func() {
			var client *attach.Client
			if client, err = attach.Dial(context.Background(), socket, rank); err != nil {
				return
			}
			got = client.Rank()
			err = client.Close(context.Background())
		})
		return got, err
	}
	// request makes a request to the control socket, and returns the answer.
	request := func(uid int, line string) (answer string) {
		as(t, uid, uid, func() {
			conn, err := net.Dial("unix", c.socket)
			if err != nil {
				answer = err.Error()
				return
			}
			defer conn.Close()
			body := `{"peer": 2}`
			fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s", line, len(body), body)
			resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				answer = err.Error()
				return
			}
			defer resp.Body.Close()
			text, _ := io.ReadAll(resp.Body)
			answer = fmt.Sprintf("%d %s", resp.StatusCode, text)
		})
		return answer
	}
	check := func(uid, rank, want int) {
		t.Helper()
		got, err := attached(uid, rank)
		if want < 0 {
			refused, ok := errors.AsType[*attach.RefusedError](err)
			if !ok || !errors.Is(err, fs.ErrPermission) ||
				!strings.Contains(refused.Text, fmt.Sprintf("user %d (group %d) may not attach to ", uid, uid)) {
				t.Errorf("user %d, rank %d: rank %d, %v", uid, rank, got, err)
			}
		} else if err != nil || got != want {
			t.Errorf("user %d, rank %d: rank %d, %v", uid, rank, got, err)
		}
	}
	check(alice, 0, 0)
	check(alice, 1, -1)
	check(alice, attach.AnyRank, 0)
	check(bob, 0, -1)
	check(bob, attach.AnyRank, 1)
	check(7, attach.AnyRank, -1)
	check(0, 1, 1)
	for _, uid := range []int{alice, bob} {
		if got := request(uid, "GET /v1/status"); !strings.HasPrefix(got, "200 ") {
			t.Errorf("user %d: %s", uid, got)
		}
	}
	if got := request(alice, "POST /v1/reset"); !strings.HasPrefix(got, "200 ") {
		t.Error(got)
	}
	if got := request(bob, "POST /v1/reset"); !strings.HasPrefix(got, "403 ") ||
		!strings.Contains(got, "user 54322 (group 54322) may only read the status of this daemon, not make the "+
			"request /v1/reset: add the user or one of its groups to control.allow") {
		t.Error(got)
	}
	r.mustReload(t, text("54322", "54322", "54322"))
	check(alice, attach.AnyRank, -1)
	check(bob, 0, 0)
	if got := request(alice, "POST /v1/reset"); !strings.HasPrefix(got, "403 ") {
		t.Error(got)
	}
	if got := r.denials.counts(); got["attach"] != 4 || got["control"] != 2 {
		t.Errorf("%v", got)
	}
	for _, want := range []string{"program refused", "user 54321 (group 54321) may not attach to rank 1 of the " +
		"daemon, which runs as user 0: add the user or one of its groups to allow of rank 1",
		"request refused", "may only read the status"} {
		r.log.waitFor(t, want)
	}
	var refused *RefusedError
	none := strings.NewReplacer("mode: 0666", "mode: 0660", ", allow: {users: [54322]}", "",
		", allow: {groups: [54322]}", "").Replace(text("54322", "54322", "54322"))
	want := []string{
		"control.mode: 0666 -> 0660",
		"rank 0: allow.users: [54322] -> not set (the first or last allow of all ranks changes the mode of the " +
			"attach socket)",
		"rank 1: allow.groups: [54322] -> not set (the first or last allow of all ranks changes the mode of the " +
			"attach socket)",
	}
	if err := r.Reload(mustParse(t, none)); !errors.As(err, &refused) || !slices.Equal(refused.Restart, want) {
		t.Errorf("without allow: %v", err)
	}
}
