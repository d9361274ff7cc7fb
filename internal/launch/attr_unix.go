//go:build unix && !linux

package launch

import (
	"errors"
	"syscall"
)

// processAttributes returns the attributes of a rank's process: it runs in a separate process group.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func cores() ([]int, error) { return nil, errors.ErrUnsupported }

func bind(int) error { return errors.ErrUnsupported }
