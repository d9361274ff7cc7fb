//go:build manual

package main

import (
	"fmt"
	"os"

	"github.com/zrlmpi/zrlmpid/internal/manual"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

// With the build tag manual, the program writes zrlctl's manual pages and completions into a folder, as `make man`
// does. The tag keeps the generators out of normal builds.
func init() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -tags manual ./cmd/zrlctl FOLDER")
		os.Exit(exitUsage)
	}
	if err := writeManual(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "zrlctl's manual:", err)
		os.Exit(exitFailure)
	}
	os.Exit(exitOK)
}

func writeManual(folder string) error {
	// Document the defaults that apply if these variables are not set.
	for _, name := range []string{"XDG_RUNTIME_DIR", "ZRLMPID_CONTROL_SOCKET"} {
		if err := os.Unsetenv(name); err != nil {
			return err
		}
	}
	root, _ := newRoot()
	return manual.Write(root, version.String(), folder)
}
