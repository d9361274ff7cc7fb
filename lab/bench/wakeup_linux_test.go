package bench

import (
	"strings"
	"testing"
)

// TestWakeUp checks that a wake-up takes some time, and that every report shows how long.
func TestWakeUp(t *testing.T) {
	r := testReport("ring", [2]int{2, 8}, "extended-udp", "openmpi-tcp", "x")
	m := &r.Machine
	if m.wakeUp() != noFigure {
		t.Error(m.wakeUp())
	}
	if err := m.measure(); err != nil {
		t.Fatal(err)
	}
	if m.WakeUp <= 0 || m.WakeUpP90 < m.WakeUp {
		t.Errorf("p50 %v, p90 %v", m.WakeUp, m.WakeUpP90)
	}
	m.WakeUp, m.WakeUpP90 = 3.21, 12.3
	for _, x := range []struct{ text, want string }{
		{printed(r), "\na wake-up of a thread that slept 1 ms: 3.21 µs (p90 12.3 µs)\n"},
	} {
		if !strings.Contains(x.text, x.want) {
			t.Errorf("there is no %q in\n%s", x.want, x.text)
		}
	}
}
