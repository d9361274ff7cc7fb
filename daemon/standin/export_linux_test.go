package standin

import "time"

// SetGrace shortens the grace of an exec kernel, for tests.
func SetGrace(k Kernel, d time.Duration) { k.(*execKernel).grace = d }

// rtlOf returns the rtlKernel of a kernel that is one, or has one.
func rtlOf(k Kernel) *rtlKernel {
	if net, ok := k.(*rtlNetKernel); ok {
		return net.rtlKernel
	}
	return k.(*rtlKernel)
}

// SetLimits shortens the limits of an rtl kernel, for tests.
func SetLimits(k Kernel, start, answer time.Duration) {
	rtl := rtlOf(k)
	rtl.limits, rtl.grace = limits{start, answer}, 50*time.Millisecond
}

// Limits returns those of an rtl kernel.
func Limits(k Kernel) (start, answer time.Duration) {
	l := rtlOf(k).limits
	return l.start, l.answer
}
