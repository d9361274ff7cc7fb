package bench

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/version"
)

// Machine describes the machine on which a run was made, and when. Unknown values are empty.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	System  string `json:"system"`
	Go      string `json:"go"`
	Version string `json:"version"`
	Time    string `json:"time"`
	// WakeUp is the median time in µs from the call that wakes a thread until the thread runs, after it was asleep for
	// a millisecond. WakeUpP90 is the 90th percentile.
	WakeUp    float64 `json:"wakeup_p50_us,omitempty"`
	WakeUpP90 float64 `json:"wakeup_p90_us,omitempty"`
	// LineLeast and LineP50 are the minimum and the median time in ns that a cache line took from one processor to
	// another during the run. They are 0 if unknown.
	LineLeast float64 `json:"cache_line_least_ns,omitempty"`
	LineP50   float64 `json:"cache_line_p50_ns,omitempty"`
	// LoadBefore and LoadAfter are the load averages over 1, 5 and 15 minutes.
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

// DescribeMachine returns a description of this machine.
func DescribeMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), System: system(),
		Go: runtime.Version(), Version: version.String(),
		Time: time.Now().UTC().Format(time.RFC3339), LoadBefore: loadAverage(),
	}
}

// measure measures how long it takes this machine to wake up a thread.
func (m *Machine) measure() error {
	p50, p90, err := measureWakeUp()
	m.WakeUp, m.WakeUpP90 = micros(p50), micros(p90)
	if err != nil {
		return fmt.Errorf("the cost of a wake-up is unknown: %w", err)
	}
	return nil
}

// wakeUp formats the time of a wake-up.
func (m *Machine) wakeUp() string {
	if m.WakeUp == 0 {
		return noFigure
	}
	return formatDuration(m.WakeUp) + " (p90 " + formatDuration(m.WakeUpP90) + ")"
}

// processors describes the machine's processors by their number and model.
func (m *Machine) processors() string { return fmt.Sprintf("%d × %s", m.Cores, m.CPU) }

// cpuModel returns the name of the processor on Linux, and GOARCH on other systems.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return cpuName(string(text))
}

// cpuName returns the name of the first processor in the text of /proc/cpuinfo, with its family and model. The name
// alone is ambiguous: in virtual machines, processors of several generations share a name, although code takes twice as
// long on some of them.
func cpuName(cpuinfo string) string {
	first, _, _ := strings.Cut(cpuinfo, "\n\n")
	of := map[string]string{}
	for line := range strings.Lines(first) {
		if key, value, ok := strings.Cut(line, ":"); ok {
			of[strings.TrimSpace(key)] = strings.TrimSpace(value)
		}
	}
	name := cmp.Or(of["model name"], runtime.GOARCH)
	if family, model := of["cpu family"], of["model"]; family != "" && model != "" {
		name += fmt.Sprintf(" (family %s, model %s)", family, model)
	}
	return name
}

func system() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return runtime.GOOS
	}
	return "Linux " + strings.TrimSpace(string(release))
}

// loadAverage returns the load averages of the machine, which show whether it was busy with other work.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(len(fields), 3)], " ")
}
