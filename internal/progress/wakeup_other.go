//go:build !linux

package progress

import "time"

// wakeupCost returns what a wake-up costs on this host: it is not known.
func wakeupCost() time.Duration { return unknownWakeup }

func measureWakeups() {}
