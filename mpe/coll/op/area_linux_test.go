package op

import (
	"testing"

	"golang.org/x/sys/unix"
)

// newArea returns at least n bytes of memory between two pages that cannot be accessed.
func newArea(t *testing.T, n int) area {
	t.Helper()
	page := unix.Getpagesize()
	n = (n + page - 1) / page * page
	b, err := unix.Mmap(-1, 0, n+2*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Munmap(b) })
	for _, guard := range [][]byte{b[:page], b[page+n:]} {
		if err := unix.Mprotect(guard, unix.PROT_NONE); err != nil {
			t.Fatal(err)
		}
	}
	return b[page : page+n : page+n]
}
