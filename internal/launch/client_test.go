//go:build unix

package launch

import (
	"context"
	"fmt"
	"os"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
)

var ctx = context.Background()

func connect() *pmi.Client {
	c, err := pmi.Connect(ctx, os.Getenv)
	try(err)
	return c
}

// try ends a rank after an error.
func try(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
}
