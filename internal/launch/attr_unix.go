//go:build unix && !linux

package launch

import (
	"errors"
	"syscall"
)

// processAttributes returns the attributes with which a rank's process is started. They put the process into a separate
// process group.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func cores() ([]int, error) { return nil, errors.ErrUnsupported }

func bind(int) error { return errors.ErrUnsupported }
