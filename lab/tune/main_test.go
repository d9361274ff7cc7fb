package tune

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain runs a rank if the test binary is started as one.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == RankCommand {
		if err := RunRank(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	// With the race detector, a rank would otherwise sleep for a second before it exits.
	os.Setenv("GORACE", "atexit_sleep_ms=0 "+os.Getenv("GORACE"))
	os.Exit(m.Run())
}
