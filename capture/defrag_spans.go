package capture

import "slices"

// rangeResult is the result of adding a fragment to a datagram.
type rangeResult uint8

const (
	rangeAdded rangeResult = iota
	// rangeDuplicate: all bytes of the fragment were already received.
	rangeDuplicate
	// rangeInvalid: the fragment partly overlaps others, contradicts the known length of the datagram, or leaves too
	// many holes between fragments.
	rangeInvalid
)

// addRange adds the bytes [from, to) of a fragment to the ranges already received.
func (p *partialDatagram) addRange(from, to int, more bool) rangeResult {
	if p.total >= 0 && to > p.total || !more && p.total >= 0 && to != p.total {
		return rangeInvalid
	}
	// i is the index of the first span that ends at from or later.
	i := 0
	for i < len(p.spans) && p.spans[i].to < from {
		i++
	}
	for j := i; j < len(p.spans) && p.spans[j].from < to; j++ {
		s := p.spans[j]
		if s.from <= from && to <= s.to {
			return rangeDuplicate
		}
		if s.to > from {
			return rangeInvalid
		}
	}
	if !more {
		if n := len(p.spans); n > 0 && p.spans[n-1].to > to {
			return rangeInvalid
		}
		p.total = to
	}
	return p.insertSpan(i, byteRange{from, to})
}

// insertSpan inserts s, which overlaps no span, at index i and merges it with adjacent spans.
func (p *partialDatagram) insertSpan(i int, s byteRange) rangeResult {
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
		return rangeInvalid
	default:
		p.spans = slices.Insert(p.spans, i, s)
	}
	return rangeAdded
}
