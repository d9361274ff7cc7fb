package node

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ownProcessors returns the processors that this process may use, as "0-3,8", or "" if that is not known.
func ownProcessors() string {
	var set unix.CPUSet
	if unix.SchedGetaffinity(0, &set) != nil {
		return ""
	}
	var list []string
	for first := 0; first < maxProcessors; first++ {
		if !set.IsSet(first) {
			continue
		}
		last := first
		for last+1 < maxProcessors && set.IsSet(last+1) {
			last++
		}
		if last == first {
			list = append(list, strconv.Itoa(first))
		} else {
			list = append(list, fmt.Sprintf("%d-%d", first, last))
		}
		first = last
	}
	return strings.Join(list, ",")
}
