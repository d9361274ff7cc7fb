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

// Finding is one thing that a check has found.
type Finding struct {
	Verdict Verdict `json:"verdict"`
	// Found is what was found, in words. Action is what to do; empty if the verdict is Right.
	Found  string `json:"found"`
	Action string `json:"action,omitempty"`
}

// Check is a check.
type Check struct {
	ID string
	// Title is what is examined, in a noun phrase.
	Title string
	// quick: its facts are gathered without waiting for the network, and without other programs.
	quick   bool
	examine func(*input) []Finding
}

// input is what a check compares. status is nil without a running daemon.
type input struct {
	*Plan
	*Facts
	status *state.Status
}

// Checks are all checks, in the order in which they are printed.
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
	{"clock", "clock", true, examineClock},
	{"open_files", "limit of open files", true, examineFiles},
	{"interface_drops", "packets lost by interfaces", true, examineInterfaceDrops},
	{"socket_drops", "datagrams lost by sockets", false, examineSocketDrops},
	{"dropped_packets", "packets dropped by the daemon", false, examineDropped},
	{"waits", "causes of waits", false, examineWaits},
}

// Result is what a check has found.
type Result struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	// Verdict is Wrong if a finding is, otherwise Unknown if one is.
	Verdict  Verdict   `json:"verdict"`
	Findings []Finding `json:"findings"`
}

// Report is the results of all checks.
type Report struct {
	Config  string   `json:"config"`
	Results []Result `json:"checks"`
}

// Examine returns what the checks find. status is that of the running daemon, or nil.
func Examine(p *Plan, f *Facts, status *state.Status) *Report {
	return examine(p, f, status, Checks)
}

// ExamineQuick is Examine with the checks whose facts take no time, for the start of a daemon.
func ExamineQuick(p *Plan, f *Facts, status *state.Status) *Report {
	return examine(p, f, status, slices.DeleteFunc(slices.Clone(Checks), func(c Check) bool { return !c.quick }))
}

func examine(p *Plan, f *Facts, status *state.Status, checks []Check) *Report {
	r := &Report{Config: p.Source}
	in := &input{p, f, status}
	for i := range checks {
		c := &checks[i]
		result := Result{ID: c.ID, Title: c.Title, Verdict: Right}
		if len(p.Problems) > 0 && i > 0 {
			break // there are no ranks
		}
		result.Findings = c.examine(in)
		for _, f := range result.Findings {
			if f.Verdict == Wrong || f.Verdict == Unknown && result.Verdict == Right {
				result.Verdict = f.Verdict
			}
		}
		r.Results = append(r.Results, result)
	}
	return r
}

// Wrong reports whether something is wrong.
func (r *Report) Wrong() bool {
	return slices.ContainsFunc(r.Results, func(c Result) bool { return c.Verdict == Wrong })
}

// maxPrinted bounds the lines of a check: one fault may have an effect on every peer.
const maxPrinted = 8

// Text returns the report as lines: each check, then what was found and what to do.
func (r *Report) Text() string {
	var b strings.Builder
	counts := make(map[Verdict]int)
	for _, c := range r.Results {
		counts[c.Verdict]++
		fmt.Fprintf(&b, "%-8s %s", c.Verdict, c.Title)
		if len(c.Findings) == 1 && c.Verdict == Right {
			fmt.Fprintf(&b, ": %s\n", c.Findings[0].Found)
			continue
		}
		b.WriteByte('\n')
		for i, f := range c.Findings {
			if i == maxPrinted {
				fmt.Fprintf(&b, "         %d more, which --json prints\n", len(c.Findings)-i)
				break
			}
			fmt.Fprintf(&b, "         %s\n", f.Found)
			if f.Action != "" {
				fmt.Fprintf(&b, "         -> %s\n", f.Action)
			}
		}
	}
	fmt.Fprintf(&b, "\n%d right, %d wrong, %d unknown\n", counts[Right], counts[Wrong], counts[Unknown])
	return b.String()
}

// findings collects those of one check.
type findings []Finding

func (f *findings) wrong(action, format string, args ...any) {
	*f = append(*f, Finding{Wrong, fmt.Sprintf(format, args...), action})
}

func (f *findings) unknown(action, format string, args ...any) {
	*f = append(*f, Finding{Unknown, fmt.Sprintf(format, args...), action})
}

// or returns the findings, or, without any, that it is right.
func (f findings) or(format string, args ...any) []Finding {
	if len(f) > 0 {
		return f
	}
	return []Finding{{Verdict: Right, Found: fmt.Sprintf(format, args...)}}
}

// examineConfiguration reports what config.Validate and Warnings have found.
func examineConfiguration(in *input) []Finding {
	var f findings
	for _, p := range in.Problems {
		f.wrong("correct it, and check it: zrlmpid --check-config --config "+in.Source, "%s", p)
	}
	for _, w := range in.Warnings {
		f.wrong("correct it in "+in.Source+", if it is not intended", "%s", w)
	}
	return f.or("%d ranks, %d of them here", len(in.Ranks), len(in.local()))
}
