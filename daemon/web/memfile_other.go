//go:build !linux

package web

import (
	"errors"
	"os"
)

// memoryFile is an unnamed in-memory file. This system does not support such files.
type memoryFile struct{ *os.File }

func newMemoryFile([]byte) (*memoryFile, error) { return nil, errors.ErrUnsupported }

func (*memoryFile) path() string { return "" }

func (*memoryFile) become(*memoryFile) error { return errors.ErrUnsupported }
