//go:build !linux

package progress

import (
	"context"
	"errors"
	"time"
)

// There is no poller on this system, and nothing of this is called: transports that are polled do not exist.

var errNoPoller = errors.New("this system has no epoll")

// NewWatch returns an error.
func NewWatch(int, func(bool) time.Duration) (Watch, error) { return nil, errNoPoller }

func serveWatches() int               { return 0 }
func heartbeat(context.Context) error { return errNoPoller }
func wakeupCost() time.Duration       { return unknownWakeup }
func measureWakeups()                 {}
func yield()                          {}
func Processor() int                  { return -1 }
func leaveProcessor(int)              {}
