package bench

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts a program that stays on the processor of that number among those
// that it may use, counted on from 0.
func startOn(number int, p *program) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	// The child has the affinity of the thread that starts it.
	if err := stayOn(number); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }() // it was so before
	return p.Start()
}

// stayOn keeps this thread on the processor of that number among those that it may use,
// counted from 0, or on the last one if there are fewer.
func stayOn(number int) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("sched_getaffinity: %w", err)
	}
	for cpu, seen := 0, 0; seen <= number && seen < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			one.Zero()
			one.Set(cpu)
			seen++
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("sched_setaffinity: %w", err)
	}
	return nil
}
