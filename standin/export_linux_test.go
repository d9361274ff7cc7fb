package standin

import "time"

// SetGrace shortens the grace of an exec kernel, for tests.
func SetGrace(k Kernel, d time.Duration) { k.(*execKernel).grace = d }

// SetLimits shortens the limits of an rtl kernel, for tests.
func SetLimits(k Kernel, start, answer time.Duration) {
	rtl := k.(*rtlKernel)
	rtl.limits, rtl.grace = limits{start, answer}, 50*time.Millisecond
}

// Limits returns those of an rtl kernel.
func Limits(k Kernel) (start, answer time.Duration) {
	l := k.(*rtlKernel).limits
	return l.start, l.answer
}
