package standin

import "time"

// SetGrace sets the grace period of an exec kernel.
func SetGrace(k Kernel, d time.Duration) { k.(*execKernel).grace = d }

// rtlOf returns k if it is an rtlKernel, or the rtlKernel that k contains.
func rtlOf(k Kernel) *rtlKernel {
	if net, ok := k.(*rtlNetKernel); ok {
		return net.rtlKernel
	}
	return k.(*rtlKernel)
}

// SetLimits sets the limits of an rtl kernel and shortens its grace period.
func SetLimits(k Kernel, start, answer time.Duration) {
	rtl := rtlOf(k)
	rtl.limits, rtl.grace = waitLimits{start, answer}, 50*time.Millisecond
}

// Limits returns the limits of an rtl kernel.
func Limits(k Kernel) (start, answer time.Duration) {
	l := rtlOf(k).limits
	return l.start, l.answer
}
