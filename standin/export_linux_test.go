package standin

import "time"

// SetGrace shortens the grace of an exec kernel, for tests.
func SetGrace(k Kernel, d time.Duration) { k.(*execKernel).grace = d }
