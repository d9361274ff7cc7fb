//go:build !linux

package jobs

import (
	"context"
	"errors"
	"io"
)

// Serve has nothing to answer on.
func Serve(string, int, func() []byte, func() []byte) (io.Closer, error) {
	return nil, errors.ErrUnsupported
}

// ServePackets has nothing to answer on.
func ServePackets(string, int, func(io.Writer, <-chan struct{})) (io.Closer, error) {
	return nil, errors.ErrUnsupported
}

// Find finds nothing.
func Find() ([]Socket, error) { return nil, nil }

// Ask cannot ask.
func (Socket) Ask(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }

// AskOthers cannot ask.
func (Socket) AskOthers(context.Context) ([]byte, error) { return nil, errors.ErrUnsupported }

// Packets cannot ask.
func (Socket) Packets(context.Context) (io.ReadCloser, error) { return nil, errors.ErrUnsupported }

// PID fails.
func (Socket) PID() (int, error) { return 0, errors.ErrUnsupported }
