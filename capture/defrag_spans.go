package capture

import "slices"

// placement is the result of adding a fragment to a datagram.
type placement uint8

const (
	placedNew placement = iota
	// placedBefore: all bytes of the fragment are already present.
	placedBefore
	// misplaced: the fragment partly overlaps others, contradicts the known length of the datagram, or creates too many
	// holes.
	misplaced
)

// place adds the byte range [from, to) of a fragment.
func (p *partial) place(from, to int, more bool) placement {
	if p.total >= 0 && to > p.total || !more && p.total >= 0 && to != p.total {
		return misplaced
	}
	// i is the first span that ends at from or later.
	i := 0
	for i < len(p.spans) && p.spans[i].to < from {
		i++
	}
	for j := i; j < len(p.spans) && p.spans[j].from < to; j++ {
		s := p.spans[j]
		if s.from <= from && to <= s.to {
			return placedBefore
		}
		if s.to > from {
			return misplaced
		}
	}
	if !more {
		if n := len(p.spans); n > 0 && p.spans[n-1].to > to {
			return misplaced
		}
		p.total = to
	}
	return p.insert(i, byteRange{from, to})
}

// insert inserts s, which overlaps no span, at index i and merges it with adjacent spans.
func (p *partial) insert(i int, s byteRange) placement {
	touchesLeft := i < len(p.spans) && p.spans[i].to == s.from
	right := i
	if touchesLeft {
		right++
	}
	touchesRight := right < len(p.spans) && p.spans[right].from == s.to
	switch {
	case touchesLeft && touchesRight:
		p.spans[i].to = p.spans[right].to
		p.spans = slices.Delete(p.spans, right, right+1)
	case touchesLeft:
		p.spans[i].to = s.to
	case touchesRight:
		p.spans[right].from = s.from
	case len(p.spans) == maxSpans:
		return misplaced
	default:
		p.spans = slices.Insert(p.spans, i, s)
	}
	return placedNew
}
