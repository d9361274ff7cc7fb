package mpi

import (
	"math/bits"
	"strconv"
)

// outOfRangeOffset is the offset that Foreign.OutOfRange adds to a negative number. It is less than any C int.
const outOfRangeOffset = -1 << (bits.UintSize/2 + 1)

// rankText returns the rank r as text. If r equals a constant, such as AnySource, the text is the constant's name.
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

// numberText returns a rank or tag as the program wrote it, without the offset of Foreign.OutOfRange.
func numberText(n int) string {
	if n <= outOfRangeOffset/2 {
		n -= outOfRangeOffset
	}
	if n == Undefined {
		return "MPI_UNDEFINED"
	}
	return strconv.Itoa(n)
}
