package htmlreport

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/capture"
)

// kindRow is a kind of finding.
type kindRow struct {
	Name capture.FindingKind `json:"name"`
	// Level is the severity of the finding: 0 if it stops or corrupts an exchange, 1 if it delays one, and 2 if it is
	// only information.
	Level int `json:"level"`
	// Total includes findings that are not listed.
	Total int `json:"total"`
}

// levels maps kinds of findings to their severity level. Kinds that are not listed have level 0.
var levels = map[capture.FindingKind]int{
	capture.LostPacket:          1,
	capture.RetransmittedPacket: 1,
	capture.DuplicatePacket:     1,
	capture.StaleHeader:         1,
	capture.CrossedRequests:     1,
	capture.CorruptPacket:       1,
	capture.MixedPadding:        2,
	capture.ClosedByPeer:        2,
}

// maxStatic is the maximum number of findings that the page shows without its script.
const maxStatic = 100

// staticFinding is a finding in the form in which the page shows it without its script.
type staticFinding struct {
	Number                  int // from 1
	Level                   int
	First                   bool // selected when the page opens
	Kind, Time, Text, Where string
}

// firstFinding returns the index of the finding selected when the page opens, which is the first of the most serious
// findings, or -1 if there are no findings.
func firstFinding(findings []capture.Finding) int {
	first := -1
	for i := range findings {
		if first < 0 || levels[findings[i].Kind] < levels[findings[first].Kind] {
			first = i
		}
	}
	return first
}

func newStaticFindings(r *capture.Report) []staticFinding {
	first := firstFinding(r.Findings)
	var list []staticFinding
	for i := range r.Findings[:min(len(r.Findings), maxStatic)] {
		f := &r.Findings[i]
		list = append(list, staticFinding{
			Number: i + 1, Level: levels[f.Kind], First: i == first, Kind: strings.ReplaceAll(string(f.Kind), "_", " "),
			Time: formatSeconds(f.Time), Text: findingText(f), Where: formatNumbers("packet", f.Packets),
		})
	}
	return list
}

// findingText returns the text of a finding, including its possible causes.
func findingText(finding *capture.Finding) string {
	text := finding.Text
	for i := range finding.Possible {
		if i == 0 {
			text += "; possible causes: "
		} else {
			text += "; "
		}
		text += finding.Possible[i].Text
	}
	return text
}

// formatNumbers formats a list of numbers: "packets 4, 5".
func formatNumbers(word string, numbers []int64) string {
	texts := make([]string, len(numbers))
	for i, n := range numbers {
		texts[i] = strconv.FormatInt(n, 10)
	}
	switch len(numbers) {
	case 0:
		return ""
	case 1:
		return word + " " + texts[0]
	}
	return word + "s " + strings.Join(texts, ", ")
}

func newFindings(report *capture.Report) findingColumns {
	columns := findingColumns{
		First: firstFinding(report.Findings),
		Kind:  []int{}, Kinds: []kindRow{}, Time: []int64{}, Text: []string{}, Packets: [][]int64{},
		Messages: [][]int64{},
	}
	for i := range report.Findings {
		finding := &report.Findings[i]
		k := slices.IndexFunc(columns.Kinds, func(row kindRow) bool { return row.Name == finding.Kind })
		if k < 0 {
			k = len(columns.Kinds)
			columns.Kinds = append(columns.Kinds, kindRow{Name: finding.Kind, Level: levels[finding.Kind]})
		}
		columns.Kinds[k].Total++
		columns.Kind = append(columns.Kind, k)
		columns.Time = append(columns.Time, nanoseconds(finding.Time))
		columns.Text = append(columns.Text, findingText(finding))
		columns.Packets = append(columns.Packets, append([]int64{}, finding.Packets...)) // [] instead of null
		columns.Messages = append(columns.Messages, append([]int64{}, finding.Messages...))
	}
	for i := range columns.Kinds {
		k := &columns.Kinds[i]
		k.Total = max(k.Total, report.Summary.FindingsByKind[k.Name])
	}
	return columns
}

// openWait describes a rank that is still waiting at the end of the recording. Since is in nanoseconds.
type openWait struct {
	Message    int64  `json:"message"`
	Rank       int    `json:"who"`
	Peer       int    `json:"on"`
	PacketType string `json:"what"`
	Since      int64  `json:"since"`
}

// openWaits returns those open waits whose messages are drawn in the diagram.
func openWaits(report *capture.Report) []openWait {
	drawn := map[int64]bool{}
	for i := range report.Messages {
		drawn[report.Messages[i].ID] = len(report.Messages[i].Steps) > 0
	}
	waits := []openWait{}
	for i := range report.Findings {
		for _, w := range report.Findings[i].Waits {
			if drawn[w.Message] {
				since := min(max(int64(w.Since.Sub(report.Start)), -maxTime), maxTime)
				waits = append(waits, openWait{Message: w.Message, Rank: w.Rank, Peer: w.Peer, PacketType: w.PacketType,
					Since: since})
			}
		}
	}
	return waits
}
