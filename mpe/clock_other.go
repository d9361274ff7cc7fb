//go:build !linux

package mpe

// processorClock returns 0, because there is no C code on other systems.
func processorClock() int64 { return 0 }
