package match

// store holds the values of a queue's entries (receives or messages), indexed by entry number.
type store[T any] []*[segLen]T

func (s store[T]) slot(i uint32) *T { return &s[i>>segBits][i&segMask] }

func (s *store[T]) put(i uint32, item T) {
	if int(i>>segBits) >= len(*s) {
		*s = append(*s, new([segLen]T))
	}
	*s.slot(i) = item
}

// take returns the value of an entry, and clears the entry so that the garbage collector can free the value.
func (s store[T]) take(i uint32) T {
	p := s.slot(i)
	item := *p
	var zero T
	*p = zero
	return item
}
