package coll

import "math"

// PipelineSegments is the number of segments with which a chain of p ranks is fastest:
// equation 1 of the source of bcastAtomic. n is the length of the data and beta the
// time of a unit of it, alpha that of a synchronisation. It is 1 at least and n at
// most.
//
//	k = √((p−2)·n·β/α)
func PipelineSegments(p, n int, alpha, beta float64) int {
	if p <= 2 || n <= 1 || !(beta > 0) {
		return 1
	}
	k := math.Sqrt(float64(p-2) * float64(n) * beta / max(alpha, 0))
	switch {
	case !(k >= 1): // k is not a number if alpha is none
		return 1
	case k > float64(n):
		return n
	}
	return int(math.Round(k))
}

// PipelineSegment is the length of segments, in bytes, that makes about that many of n
// bytes, whole elements of elem bytes each.
func PipelineSegment(p, n, elem int, alpha, beta float64) int {
	elem = max(elem, 1)
	elems := n / elem
	k := PipelineSegments(p, elems, alpha, beta*float64(elem))
	return max(1, (elems+k-1)/k) * elem
}
