package bench

import (
	"fmt"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts a program that may run only on the given processor. number counts the processors that this process may
// use, starting at 0.
func startOn(number int, p *program) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return err
	}
	// The child process inherits the processor affinity of the thread that starts it.
	if err := stayOn(number); err != nil {
		return err
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }() // restore
	return p.Start()
}

// stayOn makes the calling thread run only on the given processor. number counts the processors that the thread may
// use, starting at 0. If there are fewer processors, stayOn chooses the last one.
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
