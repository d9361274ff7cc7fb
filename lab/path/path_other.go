//go:build !linux

package path

import (
	"context"
	"errors"
	"io"
)

var errUnsupported = errors.New("path: emulation needs the network namespaces and TUN devices of Linux")

// Path is an emulated path, on Linux.
type Path struct{}

// Open returns an error, as the emulator requires Linux.
func Open(Config) (*Path, error) {
	return nil, errUnsupported
}

// Do does nothing.
func (*Path) Do(int, func()) {}

// Close does nothing.
func (*Path) Close() (Use, error) { return Use{}, nil }

// RunEmulator returns an error.
func RunEmulator(context.Context, []string, io.Reader, io.Writer) error { return errUnsupported }
