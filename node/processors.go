package node

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxProcessors bounds processor numbers.
const maxProcessors = 1024

// allowedProcessors returns the list of processors that this process may use, such as "0-3,8", or "" if unknown.
func allowedProcessors() string {
	status, _ := os.ReadFile("/proc/self/status") // Linux only
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}

// countProcessors returns the size of the union of lists returned by allowedProcessors, or 0 if one is unknown. It
// counts the union because a launcher that binds processes assigns a share of the processors to each of them.
func countProcessors(lists []string) (int, error) {
	used := map[int]bool{}
	for _, list := range lists {
		if list == "" {
			return 0, nil
		}
		for part := range strings.SplitSeq(list, ",") {
			from, to, isRange := strings.Cut(part, "-")
			if !isRange {
				to = from
			}
			first, err1 := strconv.Atoi(from)
			last, err2 := strconv.Atoi(to)
			if err1 != nil || err2 != nil || first < 0 || last < first || last >= maxProcessors {
				return 0, fmt.Errorf("%.80q is not a list of processors", list)
			}
			for i := first; i <= last; i++ {
				used[i] = true
			}
		}
	}
	return len(used), nil
}
