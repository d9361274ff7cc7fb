package sharedmem

import (
	"testing"

	"golang.org/x/sys/unix"
)

// TestCreate checks that two mappings are the same memory, whose size no process can change.
func TestCreate(t *testing.T) {
	const n = 8192
	fd, err := Create(n)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(fd)
	one, err := Map(fd, n)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(one)
	other, err := Map(fd, n)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(other)
	if one[n-1] = 7; other[n-1] != 7 || other[0] != 0 {
		t.Error("they are not the same memory")
	}
	for _, size := range []int64{0, n - 1, n + 1} {
		if err := unix.Ftruncate(fd, size); err != unix.EPERM {
			t.Errorf("changing the size to %d: %v", size, err)
		}
	}
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_WRITE); err != unix.EPERM {
		t.Errorf("another seal: %v", err)
	}
}

// TestMapRefuses checks that memory is not mapped if it can be shrunk, or has another size.
func TestMapRefuses(t *testing.T) {
	open, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(open)
	if err := unix.Ftruncate(open, 4096); err != nil {
		t.Fatal(err)
	}
	sealed, err := Create(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(sealed)
	for name, tt := range map[string]struct{ fd, n int }{
		"not sealed": {open, 4096}, "too short": {sealed, 8192}, "too long": {sealed, 2048},
		"no descriptor": {-1, 4096},
	} {
		if mem, err := Map(tt.fd, tt.n); err == nil {
			Unmap(mem)
			t.Errorf("%s: it is mapped", name)
		}
	}
	Unmap(nil)
}
