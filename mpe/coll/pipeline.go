package coll

import "math"

// PipelineSegments returns the number of segments that makes a chain of p ranks fastest, according to equation 1 of the
// paper that bcastAtomic cites. n is the length of the data, beta the time per unit of length, and alpha the time of a
// synchronization. The result is at least 1, and at most n if n > 0.
//
//	k = √((p−2)·n·β/α)
func PipelineSegments(p, n int, alpha, beta float64) int {
	if p <= 2 || n <= 1 || !(beta > 0) {
		return 1
	}
	k := math.Sqrt(float64(p-2) * float64(n) * beta / max(alpha, 0))
	switch {
	case !(k >= 1): // also if alpha is NaN
		return 1
	case k > float64(n):
		return n
	}
	return int(math.Round(k))
}

// PipelineSegment returns the segment size in bytes that PipelineSegments recommends for n bytes, a multiple of elem.
func PipelineSegment(p, n, elem int, alpha, beta float64) int {
	elem = max(elem, 1)
	elems := n / elem
	k := PipelineSegments(p, elems, alpha, beta*float64(elem))
	return max(1, (elems+k-1)/k) * elem
}
