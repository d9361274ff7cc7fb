//go:build !linux

package progress

import (
	"context"
	"errors"
	"time"
)

// This system has no poller. The functions below are never called, because no transport is polled.

var errNoPoller = errors.New("this system has no epoll")

func NewWatch(int, func(bool) time.Duration) (Watch, error) { return nil, errNoPoller }

func serveWatches() int               { return 0 }
func heartbeat(context.Context) error { return errNoPoller }
func wakeupCost() time.Duration       { return unknownWakeup }
func measureWakeups()                 {}
func yield()                          {}
func Processor() int                  { return -1 }
func leaveProcessor(int)              {}
