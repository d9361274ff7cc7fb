package bench

import (
	"fmt"
	"strings"
)

// warmup is how many messages go each way before the ones that are timed, and
// warmupWindows how many windows, as in c/stats.h.
const (
	warmup        = 20
	warmupWindows = 2
)

// step is one setting of a workload: a depth or a size, and how often to do there
// what is timed. Its text is N:ITERATIONS.
type step struct{ n, iterations int }

func (s step) String() string { return fmt.Sprintf("%d:%d", s.n, s.iterations) }

func parseStep(text string) (step, error) {
	var s step
	if _, err := fmt.Sscanf(text, "%d:%d", &s.n, &s.iterations); err != nil || s.n < 0 || s.iterations < 1 || s.String() != text {
		return step{}, fmt.Errorf("%q: a step is N:ITERATIONS, such as 100:1000", text)
	}
	return s, nil
}

// parseSteps reads a list with commas between.
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

// texts are the steps as arguments of a program.
func texts(steps []step) []string {
	args := make([]string, len(steps))
	for i, s := range steps {
		args[i] = s.String()
	}
	return args
}
