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

// Open returns an error: the emulator needs network namespaces.
func Open(Config) (*Path, error) {
	return nil, errUnsupported
}

// Do is for Linux.
func (*Path) Do(int, func()) {}

// Close is for Linux.
func (*Path) Close() (Use, error) { return Use{}, nil }

// RunEmulator is for Linux.
func RunEmulator(context.Context, []string, io.Reader, io.Writer) error { return errUnsupported }
