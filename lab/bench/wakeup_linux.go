package bench

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// wakeUps is the number of wake-ups that are measured. The thread sleeps for wakeUpSleep before each of them.
	wakeUps     = 300
	wakeUpSleep = time.Millisecond
)

// measureWakeUp measures how long it takes to wake a thread that sleeps in the kernel: from before one thread writes to
// an eventfd until the other thread, blocked in a read, runs. Each thread has its own processor if there are two.
func measureWakeUp() (p50, p90 time.Duration, err error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return 0, 0, fmt.Errorf("eventfd: %w", err)
	}
	defer unix.Close(fd)
	times, awake, failed := make([]time.Duration, 0, wakeUps), make(chan struct{}), make(chan error, 1)
	var start atomic.Int64
	go func() {
		defer close(awake)
		runtime.LockOSThread() // never unlocked: the thread exits with the goroutine
		if err := stayOn(0); err != nil {
			failed <- err
			return
		}
		var count [8]byte
		for len(times) < wakeUps {
			if _, err := unix.Read(fd, count[:]); err != nil {
				failed <- fmt.Errorf("read of an eventfd: %w", err)
				return
			}
			times = append(times, sharedNow()-time.Duration(start.Load()))
			awake <- struct{}{}
		}
	}()
	wake := func() error {
		runtime.LockOSThread()
		if err := stayOn(1); err != nil {
			return err
		}
		one := binary.NativeEndian.AppendUint64(nil, 1)
		for range wakeUps {
			time.Sleep(wakeUpSleep)
			start.Store(int64(sharedNow()))
			if _, err := unix.Write(fd, one); err != nil {
				return fmt.Errorf("write to an eventfd: %w", err)
			}
			if _, ok := <-awake; !ok {
				return <-failed
			}
		}
		return nil
	}
	woken := make(chan error)
	go func() { woken <- wake() }()
	if err := <-woken; err != nil {
		return 0, 0, err
	}
	slices.Sort(times)
	return times[wakeUps/2], times[wakeUps*9/10], nil
}
