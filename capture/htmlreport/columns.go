package htmlreport

import (
	"slices"
	"strconv"
)

// indexOrAppend returns the index of text in the list. If text is not in the list, indexOrAppend appends it. If limit
// is not 0 and the list already holds limit texts, indexOrAppend returns the last index instead.
func indexOrAppend(list *[]string, text string, limit int) int {
	if i := slices.Index(*list, text); i >= 0 {
		return i
	}
	if limit > 0 && len(*list) == limit {
		return limit - 1
	}
	*list = append(*list, text)
	return len(*list) - 1
}

// digits is a column of small numbers. It is encoded as a string in which each number is one base-32 digit.
type digits []byte

// MarshalJSON encodes the string.
func (d digits) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(d)+2), '"')
	for _, n := range d {
		b = strconv.AppendUint(b, uint64(n&31), 32)
	}
	return append(b, '"'), nil
}
