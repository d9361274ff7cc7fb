package main

import (
	"fmt"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/words"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// maxShownFailures is the maximum number of failures printed by status.
const maxShownFailures = 10

// failureLines lists the operations that failed most recently, newest first.
func failureLines(status *state.Status) []string {
	if len(status.Failures) == 0 {
		return nil
	}
	lines := []string{"", "RECENT FAILURES"}
	for i := range status.Failures[:min(len(status.Failures), maxShownFailures)] {
		failure := &status.Failures[i]
		times := ""
		if failure.Count > 1 {
			times = fmt.Sprintf(" (%d times)", failure.Count)
		}
		lines = append(lines, fmt.Sprintf("  %s  rank %d: %s: %s%s", failure.Time.Local().Format(time.DateTime), failure.Rank,
			failure.What(), words.Clean(failure.Reason, maxReasonLen), times))
		if failure.Record != "" {
			lines = append(lines, "    packets before it: zrlctl analyze "+failure.Record)
		}
	}
	if more := len(status.Failures) - maxShownFailures; more > 0 {
		lines = append(lines, fmt.Sprintf("  and %d more: see --json", more))
	}
	return append(lines, "")
}

// maxReasonLen is the maximum length of an error in characters.
const maxReasonLen = 500
