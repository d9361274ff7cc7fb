package progress

import (
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestLeaveProcessor checks that a thread that leaves a processor continues on another one, and that the set of
// processors on which it may run is the same as before.
func TestLeaveProcessor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	if before.Count() < 2 {
		t.Skip("the test may use one processor")
	}
	var p SpinPolicy
	p.Init(true)
	var on int
	p.avoidedCPU = func() int { on = Processor(); return on }
	// The kernel may move the thread back immediately, but it does not do so every time.
	for now := time.Hour; ; now += examineEvery {
		if p.leaveAvoided(now); Processor() != on {
			break
		}
		if now > time.Hour+1000*examineEvery {
			t.Fatalf("it stays on processor %d", on)
		}
	}
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != before {
		t.Errorf("it may run on %v now, and on %v before (%v)", after, before, err)
	}
}

// TestLeaveOnlyProcessor checks that a thread stays on its processor if it may not run on any other.
func TestLeaveOnlyProcessor(t *testing.T) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var before, one, after unix.CPUSet
	if err := unix.SchedGetaffinity(0, &before); err != nil {
		t.Fatal(err)
	}
	n := Processor()
	one.Set(n)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.SchedSetaffinity(0, &before) }()
	leaveProcessor(n)
	if err := unix.SchedGetaffinity(0, &after); err != nil || after != one || Processor() != n {
		t.Errorf("on processor %d of %v (%v), want %d", Processor(), after, err, n)
	}
}
