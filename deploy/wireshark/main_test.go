package wireshark_test

import (
	"fmt"
	"os"
	"testing"
)

// buildDir is the directory for programs that the tests build.
var buildDir string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "zrlmpi-wireshark-*")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	buildDir = dir
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}
