package node

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// maxProcessors bounds the numbers of processors.
const maxProcessors = 1024

// ownProcessors returns the processors that this process may use, as "0-3,8", or "" if that is not known.
func ownProcessors() string {
	status, _ := os.ReadFile("/proc/self/status") // of Linux
	for line := range strings.Lines(string(status)) {
		if list, ok := strings.CutPrefix(line, "Cpus_allowed_list:"); ok {
			return strings.TrimSpace(list)
		}
	}
	return ""
}

// processorsOf returns how many processors the processes of a host may use together, of the lists that ownProcessors returns, or 0 if
// that is not known. A launcher that binds processes gives each of them a share.
func processorsOf(lists []string) (int, error) {
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
