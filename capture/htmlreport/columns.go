package htmlreport

import "strconv"

// index numbers the different texts of a column. With a limit, everything beyond
// it gets the last number.
type index struct {
	list   *[]string
	limit  int
	places map[string]int
}

func (x *index) of(text string) int {
	if i, ok := x.places[text]; ok {
		return i
	}
	if x.limit > 0 && len(*x.list) == x.limit {
		return x.limit - 1
	}
	if x.places == nil {
		x.places = map[string]int{}
	}
	i := len(*x.list)
	*x.list = append(*x.list, text)
	x.places[text] = i
	return i
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

// bits is a column of yes and no, written as a string of 1 and 0.
type bits []bool

// MarshalJSON writes the string.
func (c bits) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, len(c)+2), '"')
	for _, yes := range c {
		if yes {
			b = append(b, '1')
		} else {
			b = append(b, '0')
		}
	}
	return append(b, '"'), nil
}
