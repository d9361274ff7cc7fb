package progress

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// registered reports whether an epoll instance of this process contains the descriptor.
func registered(t *testing.T, fd int) bool {
	t.Helper()
	infos, err := filepath.Glob("/proc/self/fdinfo/*")
	if err != nil || len(infos) == 0 {
		t.Fatalf("%d descriptors, %v", len(infos), err)
	}
	for _, name := range infos {
		info, err := os.ReadFile(name)
		if err != nil { // a descriptor of another test, closed in the meantime
			continue
		}
		for line := range strings.Lines(string(info)) {
			var watched int
			if n, _ := fmt.Sscanf(line, "tfd: %d", &watched); n == 1 && watched == fd {
				return true
			}
		}
	}
	return false
}

// TestUnregistered checks that the kernel stops watching a source that callers poll repeatedly, and watches it
// again when a caller sleeps.
func TestUnregistered(t *testing.T) {
	s := newSource(t)
	g, _ := newGroup(t, false, s)
	for i := range 2 * unregisterAfter {
		if got, want := registered(t, s.r), i < unregisterAfter; got != want {
			t.Fatalf("after %d polls it is registered: %v", i, got)
		}
		if want := i >= unregisterAfter; s.unwatched != want {
			t.Fatalf("after %d polls the source is unwatched: %v", i, s.unwatched)
		}
		g.PollOnce()
	}
	g.Watch()
	if !g.Armed() || !registered(t, s.r) || s.unwatched {
		t.Fatal("it is not watched")
	}
	for range 2 * unregisterAfter {
		g.PollOnce()
	}
	if !registered(t, s.r) || s.unwatched {
		t.Fatal("it is not watched any more, although it is armed")
	}
}
