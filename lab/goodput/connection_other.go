//go:build !linux

package goodput

import (
	"context"
	"errors"
)

// connection returns an error, as paths are emulated only on Linux.
func (*job) connection(context.Context, *counter) error {
	return errors.New("there is no TCP CUBIC on this system")
}
