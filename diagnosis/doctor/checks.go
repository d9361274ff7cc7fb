package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// Verdict is the result of a check.
type Verdict string

// The verdicts.
const (
	Right   Verdict = "right"
	Wrong   Verdict = "wrong"
	Unknown Verdict = "unknown"
)

// Finding is a single result of a check.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Found describes what the check found. Action is the remedy. It is empty if the verdict is Right.
	Found  string `json:"found"`
	Action string `json:"action,omitempty"`
}

// Check is a check of one aspect of the setup.
type Check struct {
	ID string
	// Title names the subject of the check as a noun phrase.
	Title string
	// isQuick is set if the facts for the check can be gathered without waiting for the network or for other programs.
	isQuick bool
	examine func(*input) []Finding
}

// input holds the data that the checks compare. status is nil if no daemon is running.
type input struct {
	*Plan
	*Facts
	status *state.Status
}

// Checks lists all checks, in the order in which they are printed.
var Checks = []Check{
	{"configuration", "configuration and rank map", false, examineConfiguration},
	{"local_address", "addresses of the local ranks", true, examineAddresses},
	{"duplicate_address", "duplicate addresses", false, examineDuplicates},
	{"port", "ports of the local ranks", false, examinePorts},
	{"interface", "interfaces of the local ranks", true, examineInterfaces},
	{"route", "routes to other hosts", true, examineRoutes},
	{"reverse_path", "reverse path filter", true, examineReversePath},
	{"neighbour", "ARP and neighbour discovery", false, examineNeighbours},
	{"path_mtu", "path MTU", true, examinePathMTU},
	{"receive_buffer", "receive buffers", true, examineBuffer},
	{"offload", "UDP offload", true, examineOffload},
	{"xdp", "AF_XDP", true, examineXDP},
	{"clock", "clock", true, examineClock},
	{"open_files", "limit of open files", true, examineFiles},
	{"interface_drops", "packets lost by interfaces", true, examineInterfaceDrops},
	{"socket_drops", "datagrams lost by sockets", false, examineSocketDrops},
	{"dropped_packets", "packets dropped by the daemon", false, examineDropped},
	{"waits", "causes of waits", false, examineWaits},
}

// Result is the result of a check.
type Result struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Verdict is the worst verdict of the findings: Wrong, then Unknown, then Right.
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Report contains the results of all checks.
type Report struct {
	Config  string   `json:"config"`
	Results []Result `json:"checks"`
}

// Examine runs all checks. status is the status of the running daemon, or nil if no daemon is running.
func Examine(p *Plan, f *Facts, status *state.Status) *Report {
	return examine(p, f, status, Checks)
}

// ExamineQuick is like Examine, but runs only quick checks. A daemon calls it when it starts.
func ExamineQuick(p *Plan, f *Facts, status *state.Status) *Report {
	return examine(p, f, status, slices.DeleteFunc(slices.Clone(Checks), func(c Check) bool { return !c.isQuick }))
}

func examine(plan *Plan, f *Facts, status *state.Status, checks []Check) *Report {
	report := &Report{Config: plan.Source}
	in := &input{plan, f, status}
	for i := range checks {
		c := &checks[i]
		result := Result{ID: c.ID, Title: c.Title, Verdict: Right}
		if len(plan.Problems) > 0 && i > 0 {
			break // there are no ranks to check
		}
		result.Findings = c.examine(in)
		for _, f := range result.Findings {
			if f.Verdict == Wrong || f.Verdict == Unknown && result.Verdict == Right {
				result.Verdict = f.Verdict
			}
		}
		report.Results = append(report.Results, result)
	}
	return report
}

// HasWrong reports whether any check has the verdict Wrong.
func (r *Report) HasWrong() bool {
	return slices.ContainsFunc(r.Results, func(c Result) bool { return c.Verdict == Wrong })
}

// maxPrinted is the maximum number of findings printed per check, because one fault may affect every peer.
const maxPrinted = 8

// Text formats the report as lines: each check is followed by its findings and their remedies.
func (r *Report) Text() string {
	var b strings.Builder
	counts := make(map[Verdict]int)
	for _, result := range r.Results {
		counts[result.Verdict]++
		fmt.Fprintf(&b, "%-8s %s", result.Verdict, result.Title)
		if len(result.Findings) == 1 && result.Verdict == Right {
			fmt.Fprintf(&b, ": %s\n", result.Findings[0].Found)
			continue
		}
		b.WriteByte('\n')
		for i, finding := range result.Findings {
			if i == maxPrinted {
				fmt.Fprintf(&b, "         %d more, which --json prints\n", len(result.Findings)-i)
				break
			}
			fmt.Fprintf(&b, "         %s\n", finding.Found)
			if finding.Action != "" {
				fmt.Fprintf(&b, "         -> %s\n", finding.Action)
			}
		}
	}
	fmt.Fprintf(&b, "\n%d right, %d wrong, %d unknown\n", counts[Right], counts[Wrong], counts[Unknown])
	return b.String()
}

// findings collects the findings of one check.
type findings []Finding

func (f *findings) addWrong(action, format string, args ...any) {
	*f = append(*f, Finding{Wrong, fmt.Sprintf(format, args...), action})
}

func (f *findings) addUnknown(action, format string, args ...any) {
	*f = append(*f, Finding{Unknown, fmt.Sprintf(format, args...), action})
}

// orRight returns the given findings. If there are none, it returns a single finding with the verdict Right.
func (f findings) orRight(format string, args ...any) []Finding {
	if len(f) > 0 {
		return f
	}
	return []Finding{{Verdict: Right, Found: fmt.Sprintf(format, args...)}}
}

// examineConfiguration reports the problems that config.Validate and Warnings find in the configuration.
func examineConfiguration(in *input) []Finding {
	var f findings
	for _, p := range in.Problems {
		f.addWrong("correct it, and check it: zrlmpid --check-config --config "+in.Source, "%s", p)
	}
	for _, w := range in.Warnings {
		f.addWrong("correct it in "+in.Source+", if it is not intended", "%s", w)
	}
	return f.orRight("%d ranks, %d of them here", len(in.Ranks), len(in.localRanks()))
}
