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

// Machine is where figures come from. What cannot be determined is empty.
type Machine struct {
	CPU     string `json:"cpu"`
	Cores   int    `json:"cores"`
	System  string `json:"system"`
	Go      string `json:"go"`
	Version string `json:"version"`
	Time    string `json:"time"`
	// WakeUp is the time in µs from the call that wakes a thread, which has slept for a
	// millisecond, until it runs, and WakeUpP90 that of the slower ones: p50 and p90.
	WakeUp    float64 `json:"wakeup_p50_us,omitempty"`
	WakeUpP90 float64 `json:"wakeup_p90_us,omitempty"`
	// LineLeast is the least time in ns in which a cache line moved from one processor to
	// another during the run, and LineP50 the median; 0 is unknown.
	LineLeast float64 `json:"cache_line_least_ns,omitempty"`
	LineP50   float64 `json:"cache_line_p50_ns,omitempty"`
	// LoadBefore and LoadAfter are load averages of 1, 5 and 15 minutes.
	LoadBefore string `json:"load_before"`
	LoadAfter  string `json:"load_after"`
}

// DescribeMachine says what this machine is.
func DescribeMachine() Machine {
	return Machine{
		CPU: cpuModel(), Cores: runtime.NumCPU(), System: system(),
		Go: runtime.Version(), Version: version.String(),
		Time: time.Now().UTC().Format(time.RFC3339), LoadBefore: loadAverage(),
	}
}

// measure measures what a wake-up costs on this machine.
func (m *Machine) measure() error {
	p50, p90, err := measureWakeUp()
	m.WakeUp, m.WakeUpP90 = micros(p50), micros(p90)
	if err != nil {
		return fmt.Errorf("the cost of a wake-up is unknown: %w", err)
	}
	return nil
}

// wakeUp says what a wake-up costs.
func (m *Machine) wakeUp() string {
	if m.WakeUp == 0 {
		return none
	}
	return duration(m.WakeUp) + " (p90 " + duration(m.WakeUpP90) + ")"
}

// processors says how many there are, and which.
func (m *Machine) processors() string { return fmt.Sprintf("%d × %s", m.Cores, m.CPU) }

// cpuModel is what Linux calls the processor.
func cpuModel() string {
	text, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	return cpuName(string(text))
}

// cpuName returns the name of the first processor in the text of /proc/cpuinfo. Virtual machines give processors of several
// generations one name, and code takes twice as long on some of them: family and model distinguish them.
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

// loadAverage returns the load averages of the machine, which show other load.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(text))
	return strings.Join(fields[:min(len(fields), 3)], " ")
}
