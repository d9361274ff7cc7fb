//go:build !linux

package poller

import (
	"context"
	"time"
)

// Watch is a descriptor that is watched.
type Watch struct{}

// Add returns ErrUnsupported.
func Add(int, Handler) (*Watch, error) { return nil, ErrUnsupported }

// PollOnce finds nothing.
func PollOnce() int { return 0 }

// Heartbeat returns ErrUnsupported.
func Heartbeat(context.Context) error { return ErrUnsupported }

// Arm does nothing.
func (*Watch) Arm() error { return nil }

// Remove does nothing.
func (*Watch) Remove() {}

// Unregister does nothing.
func (*Watch) Unregister() {}

// Postpone does nothing.
func (*Watch) Postpone(time.Duration) {}
