package bench

import (
	"runtime"
	"testing"
)

func TestCPUName(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"processor\t: 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: " +
			"another\n", "AMD EPYC (family 25, model 1)"},
		{"processor\t: 0\nmodel name\t: ARMv8\n", "ARMv8"},
		{"processor\t: 0\nBogoMIPS\t: 50.00\n", runtime.GOARCH},
		{"", runtime.GOARCH},
	} {
		if got := cpuName(tt.text); got != tt.want {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}
