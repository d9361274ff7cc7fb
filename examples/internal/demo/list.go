package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// List is a flag of several whole numbers, such as "1,346,1000".
type List []int

// String is the inverse of Set.
func (l *List) String() string {
	var parts []string
	for _, n := range *l {
		parts = append(parts, strconv.Itoa(n))
	}
	return strings.Join(parts, ",")
}

// Set reads the numbers.
func (l *List) Set(s string) error {
	*l = nil
	for part := range strings.SplitSeq(s, ",") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("%q is not a whole number; write several with commas between them", part)
		}
		*l = append(*l, n)
	}
	return nil
}
