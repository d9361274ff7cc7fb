package needs

import (
	"runtime"
	"strings"
	"testing"
)

// recorder ends its test like testing.T, and records how.
type recorder struct {
	testing.TB
	failed, skipped string
}

func (r *recorder) Helper() {}

func (r *recorder) Fatal(args ...any) { r.failed = args[0].(string); runtime.Goexit() }

func (r *recorder) Skip(args ...any) { r.skipped = args[0].(string); runtime.Goexit() }

// A missing requirement skips a test, and fails it in CI.
func TestMissing(t *testing.T) {
	for _, ci := range []bool{false, true} {
		t.Setenv("CI", map[bool]string{true: "true"}[ci])
		r, ended := &recorder{TB: t}, make(chan bool)
		go func() {
			defer close(ended)
			Program(r, "the moon", "no-such-program", "moon-tools")
			t.Error("it goes on")
		}()
		<-ended
		said, other := r.skipped, r.failed
		if ci {
			said, other = other, said
		}
		if !strings.Contains(said,
			"NOT TESTED: the moon: no-such-program is not installed (apt-get install moon-tools)") || other != "" {
			t.Errorf("CI %v: %+v", ci, r)
		}
	}
	if path := Program(t, "needs", "go", "golang"); path == "" {
		t.Error("there is no path")
	}
}
