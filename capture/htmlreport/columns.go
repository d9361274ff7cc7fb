package htmlreport

import (
	"slices"
	"strconv"
)

// place returns the number of a text in a list, to which it adds it if it is not there.
// With a limit, everything beyond it gets the last number.
func place(list *[]string, text string, limit int) int {
	if i := slices.Index(*list, text); i >= 0 {
		return i
	}
	if limit > 0 && len(*list) == limit {
		return limit - 1
	}
	*list = append(*list, text)
	return len(*list) - 1
}

// digits is a column of small numbers, written as a string with a digit of base
// 32 for each.
type digits []byte

// MarshalJSON writes the string.
func (d digits) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(d)+2), '"')
	for _, n := range d {
		b = strconv.AppendUint(b, uint64(n&31), 32)
	}
	return append(b, '"'), nil
}
