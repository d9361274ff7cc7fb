package bench

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMeasureLine checks that moving a cache line between two processors takes some time, and that nothing is measured
// if there is only one processor.
func TestMeasureLine(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	ns, err := measureLine()
	if err != nil || (ns > 0) != (all.Count() > 1 && runtime.GOMAXPROCS(0) > 1) {
		t.Errorf("%v ns, %v", ns, err)
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	if ns, err := measureLine(); ns != 0 || err != nil {
		t.Errorf("on one processor: %v ns, %v", ns, err)
	}
}
