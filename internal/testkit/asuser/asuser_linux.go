// Package asuser runs parts of a test as another user, in the test's process: the kernel has a user for each thread.
package asuser

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// Other is a user and group ID that owns nothing, and that no system uses.
const Other = 54321

// Do calls f on a thread of the given user and waits for it. f must not call t.FailNow or start goroutines that need
// the user. It requires root; see needs.Root.
func Do(t testing.TB, user int, f func()) {
	t.Helper()
	needs.Root(t, "what another user can do", "can be another user")
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // the thread ends with the goroutine
		err := become(user)
		if err == nil {
			f()
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatalf("becoming user %d: %v", user, err)
	}
}

// become changes the user of the calling thread only, unlike the functions of package syscall, which change all
// threads.
func become(user int) error {
	for _, call := range []struct{ number, groups uintptr }{{unix.SYS_SETGROUPS, 0}, {unix.SYS_SETRESGID, 1},
		{unix.SYS_SETRESUID, 1}} {
		id := uintptr(user) * call.groups
		if _, _, errno := unix.RawSyscall(call.number, id, id, id); errno != 0 {
			return errno
		}
	}
	return nil
}
