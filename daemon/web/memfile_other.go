//go:build !linux

package web

import (
	"errors"
	"os"
)

// memoryFile is an unnamed in-memory file, which this system does not support.
type memoryFile struct{ *os.File }

func newMemoryFile([]byte) (*memoryFile, error) { return nil, errors.ErrUnsupported }

func (*memoryFile) path() string { return "" }

func (*memoryFile) become(*memoryFile) error { return errors.ErrUnsupported }
