//go:build !linux

package progress

import (
	"context"
	"errors"
	"time"
)

// On systems without a poller, no transport is polled, so the functions below are never called.

var errNoPoller = errors.New("this system has no epoll")

func NewWatch(int, func(bool) time.Duration) (Watch, error) { return nil, errNoPoller }

func serveWatches() int               { return 0 }
func heartbeat(context.Context) error { return errNoPoller }
func wakeupCost() time.Duration       { return unknownWakeup }
func measureWakeups()                 {}
func yield()                          {}
func Processor() int                  { return -1 }
func leaveProcessor(int)              {}
