//go:build !linux

package web

import (
	"errors"
	"os"
)

// memoryFile is a file in memory without a name, which this system does not have.
type memoryFile struct{ *os.File }

func newMemoryFile([]byte) (*memoryFile, error) { return nil, errors.ErrUnsupported }

func (*memoryFile) path() string { return "" }

func (*memoryFile) become(*memoryFile) error { return errors.ErrUnsupported }
