package htmlreport

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
)

// head is the text at the top of the page, readable without the script.
type head struct {
	Name, Source string
	Verdict      string
	// State is the class of the line with the verdict: "clean" for no findings, "found" for findings, or "cut" for a
	// recording that is truncated or has no messages.
	State   string
	Facts   []fact
	Notices []string
}

// fact is a named value about the recording, shown at the top of the page.
type fact struct {
	Name, Value string
	// Detail may be empty.
	Detail string
}

func newHead(report *capture.Report) head {
	summary := &report.Summary
	h := head{Source: strings.ToValidUTF8(report.Source, "\ufffd")}
	if h.Name = filepath.Base(h.Source); h.Source == "" || h.Source == "-" {
		h.Name = "standard input"
	}
	h.Verdict, h.State = overallVerdict(report)
	h.Facts = []fact{
		{"Recorded", formatTime(report.Start), ""},
		{"Time span", formatSeconds(summary.Seconds), ""},
		{"Packets", formatCount(summary.Packets), formatBytes(summary.Bytes)},
		{"Messages", formatCount(summary.All.Messages), plural(summary.All.Words, "word")},
		{"Complete", formatCount(summary.All.Complete), formatPercent(summary.All.Complete, summary.All.Messages)},
		{"Retransmissions", formatCount(summary.All.Retransmissions), ""},
	}
	if summary.Truncated != "" {
		h.Notices = append(h.Notices, "Only the beginning of the recording could be read: "+
			strings.ToValidUTF8(summary.Truncated, "\ufffd")+". This report covers that part.")
	}
	if report.Joined != nil {
		for _, line := range report.Joined.Lines() {
			h.Notices = append(h.Notices, strings.ToValidUTF8(line, "\ufffd")+".")
		}
	}
	if summary.MessagesNotListed > 0 {
		h.Notices = append(h.Notices, fmt.Sprintf("%s of %s are not listed here, nor drawn, nor in the charts; the "+
			"numbers above and the table of pairs include them.",
			formatCount(summary.MessagesNotListed), plural(summary.All.Messages, "message")))
	}
	if summary.FindingsNotListed > 0 {
		h.Notices = append(h.Notices,
			plural(summary.FindingsNotListed, "finding")+" more of the same kinds are counted, but not listed.")
	}
	if text := extendedNotice(summary.Extended); text != "" {
		h.Notices = append(h.Notices, text)
	}
	if text := skippedNotice(summary.Skipped); text != "" {
		h.Notices = append(h.Notices, text)
	}
	return h
}

// overallVerdict returns the verdict and its class.
func overallVerdict(report *capture.Report) (text, state string) {
	n := int64(len(report.Findings)) + report.Summary.FindingsNotListed
	switch {
	case n > 0:
		return plural(n, "finding"), "found"
	case report.Summary.Truncated != "":
		return "no findings in the readable part of the recording", "cut"
	case report.Summary.All.Messages == 0 && len(report.Summary.Extended) == 0:
		return "no messages in this recording", "cut"
	}
	return "clean", "clean"
}

// extendedNotice summarizes the messages of the extended profile, which the page does not draw.
func extendedNotice(pairs []capture.ExtendedPair) string {
	var packets, messages, complete, retransmissions int64
	for i := range pairs {
		packets += pairs[i].Packets
		messages += pairs[i].Messages
		complete += pairs[i].Complete
		retransmissions += pairs[i].Retransmissions
	}
	if packets == 0 {
		return ""
	}
	return fmt.Sprintf("%s of the extended profile: %s, %s complete, %s retransmitted. They are not listed here, "+
		"nor drawn.",
		plural(packets, "packet"), plural(messages, "message"), formatCount(complete), plural(retransmissions, "packet"))
}

func skippedNotice(reasons map[string]int64) string {
	var n int64
	var list []string
	for reason, k := range reasons {
		n += k
		list = append(list, strings.ToValidUTF8(reason, "\ufffd")+" "+formatCount(k))
	}
	if n == 0 {
		return ""
	}
	slices.Sort(list)
	return plural(n, "packet") + " ignored: " + strings.Join(list, ", ") + "."
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05.000 UTC")
}

func formatSeconds(s float64) string {
	switch {
	case s >= 120:
		return time.Duration(nanoseconds(s)).Round(time.Second).String()
	case s >= 1:
		return strconv.FormatFloat(s, 'f', 3, 64) + " s"
	case s >= 1e-3:
		return strconv.FormatFloat(s*1e3, 'f', 3, 64) + " ms"
	}
	return strconv.FormatFloat(max(s, 0)*1e6, 'f', 1, 64) + " µs"
}

// formatCount formats a number with thin spaces between thousands.
func formatCount(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func plural(n int64, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return formatCount(n) + " " + word + "s"
}

func formatBytes(n int64) string {
	switch {
	case n >= 1e9:
		return strconv.FormatFloat(float64(n)/1e9, 'f', 2, 64) + " GB"
	case n >= 1e6:
		return strconv.FormatFloat(float64(n)/1e6, 'f', 2, 64) + " MB"
	case n >= 1e3:
		return strconv.FormatFloat(float64(n)/1e3, 'f', 1, 64) + " kB"
	}
	return formatCount(n) + " bytes"
}

func formatPercent(part, whole int64) string {
	if whole <= 0 {
		return ""
	}
	// Round down so that 100 % is shown only if nothing is missing.
	tenths := math.Floor(float64(part) / float64(whole) * 1000)
	return strconv.FormatFloat(tenths/10, 'f', -1, 64) + " %"
}
