//go:build !linux

package standin

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/config"
)

// newRTL returns the error of newExec.
func newRTL(b base, k config.Kernel) (Kernel, error) { return newExec(b, k.Command) }

// newExec returns an error: ending a program together with all its children needs the process groups and waitid
// of Linux.
func newExec(b base, _ []string) (Kernel, error) {
	return nil, fmt.Errorf("kernel %q: programs run on Linux only: %w", b.name, errors.ErrUnsupported)
}
