package bench

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// warmup is the number of messages in each direction that precede the timed ones. warmupWindows is the number of
// windows that precede the timed windows. The file c/stats.h defines the same numbers.
const (
	warmup        = 20
	warmupWindows = 2
)

// warmTime is the time for which the ranks of an MPI repeat their first step before measurements begin; quickWarmTime
// is used for quick steps. Meanwhile, the system distributes the ranks over the processors, connections adapt, and the
// monitor of Go's runtime slows down from a check every 20 to 80 µs to one every 10 ms. In a rank's arguments, the time
// comes before the steps, in milliseconds and preceded by warmPrefix.
const (
	warmTime      = 100 * time.Millisecond
	quickWarmTime = time.Millisecond
	warmPrefix    = "warm:"
)

// step is one setting of a workload. It consists of n, such as a message size or a queue depth, and the number of timed
// iterations. It is written as N:ITERATIONS.
type step struct{ n, iterations int }

func (s step) String() string { return fmt.Sprintf("%d:%d", s.n, s.iterations) }

func parseStep(text string) (step, error) {
	var s step
	if _, err := fmt.Sscanf(text, "%d:%d", &s.n, &s.iterations); err != nil || s.n < 0 || s.iterations < 1 ||
		s.String() != text {
		return step{}, fmt.Errorf("%q: a step is N:ITERATIONS, such as 100:1000", text)
	}
	return s, nil
}

// parseSteps parses a comma-separated list of steps.
func parseSteps(list string) ([]step, error) {
	var steps []step
	for text := range strings.SplitSeq(list, ",") {
		s, err := parseStep(text)
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// parseWarm parses the command-line argument that contains the warm-up time.
func parseWarm(text string) (time.Duration, error) {
	ms, err := strconv.ParseUint(strings.TrimPrefix(text, warmPrefix), 10, 16)
	if err != nil {
		return 0, fmt.Errorf("%q: it is %sMILLISECONDS", text, warmPrefix)
	}
	return time.Duration(ms) * time.Millisecond, nil
}

// stepArgs converts the steps to command-line arguments for a program.
func stepArgs(steps []step) []string {
	args := make([]string, len(steps))
	for i, s := range steps {
		args[i] = s.String()
	}
	return args
}
