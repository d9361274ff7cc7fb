package progress

import (
	"time"

	"github.com/zrlmpi/zrlmpid/internal/poller"
)

// Timer calls a function at a time. Its methods are those of a time.Timer.
type Timer interface {
	Reset(d time.Duration) bool
	Stop() bool
}

// NewTimer makes a timer for the group's owner that is not set. Where there are sources it is the poller's: one of the Go runtime waits for
// whole milliseconds. The function must not wait then.
func (g *Group) NewTimer(call func()) (Timer, error) {
	if g.Len() > 0 {
		return poller.NewTimer(call)
	}
	t := time.AfterFunc(time.Hour, call)
	t.Stop()
	return t, nil
}
