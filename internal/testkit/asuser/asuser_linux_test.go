package asuser

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
)

// TestDo: a file created by f belongs to the user, and the rest of the test runs as before.
func TestDo(t *testing.T) {
	needs.Root(t, "what another user can do", "can be another user")
	dir := t.TempDir()
	for _, path := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(path, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "x")
	var err error
	Do(t, Other, func() { err = os.WriteFile(path, nil, 0o600) })
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Sys().(*syscall.Stat_t).Uid != Other || info.Sys().(*syscall.Stat_t).Gid != Other ||
		os.Getuid() != 0 {
		t.Errorf("%+v, %v", info, err)
	}
}
