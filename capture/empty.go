package capture

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// ExplainEmpty explains why the report contains no ZRLMPI packets, and suggests flags of zrlctl. It returns "" if the
// report contains messages or findings.
func (r *Report) ExplainEmpty() string {
	s := &r.Summary
	if s.All.Messages > 0 || len(s.Extended) > 0 || len(r.Findings) > 0 {
		return ""
	}
	stats := Stats{Packets: s.Packets, Units: s.Units, Skipped: s.Skipped}
	return stats.ExplainEmpty()
}

// ExplainEmpty explains why no ZRLMPI packet was found in a recording with these counts, and suggests flags of zrlctl.
func (s *Stats) ExplainEmpty() string {
	switch {
	case s.Packets == 0:
		return "the recording has no packets: record while the ranks exchange messages; zrlctl capture and trace record " +
			"messages within a host only with record.shared_memory; of tcpdump, check the interface and the filter"
	case s.Units == 0:
		return fmt.Sprintf("all %s were ignored (%s): %s", formatCount(s.Packets, "packet"),
			strings.Join(s.SkippedReasons(), ", "), s.ignoredAdvice())
	}
	return fmt.Sprintf("none of %s is a ZRLMPI packet: give the ports of the ranks with --port, or their --profile",
		formatCount(s.Packets, "packet"))
}

// ignoredAdvice returns advice for the user about the most frequent reason for which packets were ignored.
func (s *Stats) ignoredAdvice() string {
	most := ""
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		if most == "" || s.Skipped[reason] > s.Skipped[most] {
			most = reason
		}
	}
	switch most {
	case skipNames[skipOtherPort]:
		return "give the ports of the ranks with --port, or --all-ports"
	case skipNames[skipCutShort]:
		return "record with a longer snapshot length, as in tcpdump -s 0"
	}
	return "record IP packets on an interface between the ranks"
}

// SkippedReasons formats the counts of skipped packets, as Stats.SkippedReasons does.
func (s *Summary) SkippedReasons() []string {
	stats := Stats{Skipped: s.Skipped}
	return stats.SkippedReasons()
}

// SkippedReasons returns a text for each reason for ignoring packets, such as "not_ip 12", sorted by name.
func (s *Stats) SkippedReasons() []string {
	var words []string
	for _, reason := range slices.Sorted(maps.Keys(s.Skipped)) {
		words = append(words, fmt.Sprintf("%s %d", reason, s.Skipped[reason]))
	}
	return words
}
