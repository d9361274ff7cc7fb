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

// Timer is not made.
type Timer struct{}

// NewTimer returns ErrUnsupported.
func NewTimer(func()) (*Timer, error) { return nil, ErrUnsupported }

// Reset does nothing.
func (*Timer) Reset(time.Duration) bool { return false }

// Stop does nothing.
func (*Timer) Stop() bool { return false }
