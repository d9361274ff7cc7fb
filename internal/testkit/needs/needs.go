// Package needs is for tests that need more than Go: a program, or root. Without it they are skipped
// and say so, but never in CI, where they fail.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of a program, which is in a package of Debian. What is what is tested with it.
func Program(t testing.TB, what, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(t, what, program+" is not installed (apt-get install "+debian+")")
	}
	return path
}

// Root is for what only root can do.
func Root(t testing.TB, what, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, what, "only root "+why)
	}
}

// Missing ends the test.
func Missing(t testing.TB, what, why string) {
	t.Helper()
	message := "NOT TESTED: " + what + ": " + why
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}
