package main

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// maxShownFailures is the maximum number of failures printed by status.
const maxShownFailures = 10

// failureLines lists the operations that failed last, the newest first.
func failureLines(s *state.Status) []string {
	if len(s.Failures) == 0 {
		return nil
	}
	lines := []string{"", "RECENT FAILURES"}
	for i := range s.Failures[:min(len(s.Failures), maxShownFailures)] {
		f := &s.Failures[i]
		times := ""
		if f.Count > 1 {
			times = fmt.Sprintf(" (%d times)", f.Count)
		}
		lines = append(lines, fmt.Sprintf("  %s  rank %d: %s: %s%s", f.Time.Local().Format(time.DateTime), f.Rank,
			f.What(), words.Clean(f.Reason, maxReasonLen), times))
		if f.Record != "" {
			lines = append(lines, "    packets before it: zrlctl analyze "+f.Record)
		}
	}
	if more := len(s.Failures) - maxShownFailures; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more, which --json has", more))
	}
	return append(lines, "")
}

// maxReasonLen is the maximum length of an error in characters.
const maxReasonLen = 500
