// Package needs is for tests that need a program or root. Without it, they are skipped with a message; in CI they fail.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Program returns the path of the named program. In the message for a missing program, the text what names the subject
// of the test, and debian the Debian package that contains the program.
func Program(t testing.TB, what, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		Missing(t, what, program+" is not installed (apt-get install "+debian+")")
	}
	return path
}

// Root skips or fails the test unless it runs as root. why completes "only root ...".
func Root(t testing.TB, what, why string) {
	t.Helper()
	if os.Geteuid() != 0 {
		Missing(t, what, "only root "+why)
	}
}

// Missing skips the test, or fails it in CI.
func Missing(t testing.TB, what, why string) {
	t.Helper()
	message := "NOT TESTED: " + what + ": " + why
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}
