package mpi

import (
	"math/bits"
	"strconv"
)

// outOfRangeOffset is the offset that Foreign.OutOfRange adds. It is outside the range of a C int.
const outOfRangeOffset = -1 << (bits.UintSize/2 + 1)

// rankText returns rank r as text, or the name of the constant that it equals.
func rankText(r int) string {
	switch r {
	case AnySource:
		return "MPI_ANY_SOURCE"
	case ProcNull:
		return "MPI_PROC_NULL"
	case Root:
		return "MPI_ROOT"
	}
	return numberText(r)
}

// tagText is like rankText, for a tag.
func tagText(t int) string {
	if t == AnyTag {
		return "MPI_ANY_TAG"
	}
	return numberText(t)
}

func numberText(n int) string {
	if n <= outOfRangeOffset/2 {
		n -= outOfRangeOffset
	}
	if n == Undefined {
		return "MPI_UNDEFINED"
	}
	return strconv.Itoa(n)
}
