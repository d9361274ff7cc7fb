//go:build unix && !linux

package launch

import (
	"errors"
	"syscall"
)

// processAttributes are those of the process of a rank: in a process group of its own.
func processAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

func cores() ([]int, error) { return nil, errors.ErrUnsupported }

func bind(int) error { return errors.ErrUnsupported }
