//go:build manual

package main

import (
	"fmt"
	"os"

	"github.com/zrlmpi/zrlmpid/internal/manual"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

// With the build tag manual, the program writes the manual pages and completions of zrlbench into the given folder, and
// does nothing else. `make man` runs it.
func init() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run -tags manual ./cmd/zrlbench FOLDER")
		os.Exit(exitUsage)
	}
	if err := manual.Write(new(app).root(), version.String(), os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "zrlbench's manual:", err)
		os.Exit(exitFailure)
	}
	os.Exit(exitOK)
}
