//go:build !linux

package standin

import (
	"errors"
	"fmt"

	"github.com/zrlmpi/zrlmpid/config"
)

// newRTL returns the same error as newExec.
func newRTL(b base, k config.Kernel) (Kernel, error) { return newExec(b, k.Command) }

// newExec returns an error. Only Linux provides the process groups and the waitid call needed to end a program together
// with all its children.
func newExec(b base, _ []string) (Kernel, error) {
	return nil, fmt.Errorf("kernel %q: programs run on Linux only: %w", b.name, errors.ErrUnsupported)
}
