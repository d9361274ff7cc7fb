//go:build unix

package control_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/daemon/control"
)

// TestUmask checks that the umask of the process is unchanged after sockets have been created concurrently.
func TestUmask(t *testing.T) {
	umask := func() int {
		old := syscall.Umask(0o22)
		syscall.Umask(old)
		return old
	}
	before, dir := umask(), t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for n := range 50 {
				l, err := control.Listen(filepath.Join(dir, fmt.Sprintf("%d.%d", i, n)), 0o600)
				if err != nil {
					t.Error(err)
					return
				}
				l.Close()
			}
		})
	}
	wg.Wait()
	if after := umask(); after != before {
		t.Errorf("the umask is %#o, and was %#o", after, before)
	}
}
