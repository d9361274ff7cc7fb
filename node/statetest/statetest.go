// Package statetest keeps the state that ranks leave for their next process out of the user's directories, and away
// from the next run of the tests. It must not be part of a program.
package statetest

import (
	"os"
	"testing"
)

// Run runs the tests of a package, and returns their exit code. During the tests, ranks, jobs and daemons of this
// process and its children keep their state in a temporary directory.
func Run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "zrlmpid-state")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// Jobs use the first variable, and daemons the second, which systemd sets.
	for _, variable := range []string{"XDG_STATE_HOME", "STATE_DIRECTORY"} {
		if err := os.Setenv(variable, dir); err != nil {
			panic(err)
		}
	}
	return m.Run()
}
