package op

import "unsafe"

// The loops below process eight elements per iteration, through array pointers, so that bounds are checked once and
// loads are independent. The loops of a function compute every element by the same expression.

type integer interface {
	int8 | int16 | int32 | int64 | uint8 | uint16 | uint32 | uint64
}

type scalar interface {
	integer | float32 | float64
}

type number interface {
	scalar | complex64 | complex128
}

// elementwise returns a Func that applies f to the elements. It copies unaligned memory through aligned buffers.
func elementwise[T any](f func(inout, in []T)) Func {
	return func(inout, in []byte) {
		var zero T
		size := int(unsafe.Sizeof(zero))
		n := min(len(inout), len(in)) / size
		if n == 0 {
			return
		}
		if aligned[T](inout) && aligned[T](in) {
			f(unsafe.Slice((*T)(unsafe.Pointer(&inout[0])), n), unsafe.Slice((*T)(unsafe.Pointer(&in[0])), n))
			return
		}
		var a, b [32]T
		for n > 0 {
			m := min(n, len(a))
			x := unsafe.Slice((*byte)(unsafe.Pointer(&a)), m*size)
			y := unsafe.Slice((*byte)(unsafe.Pointer(&b)), m*size)
			copy(x, inout)
			copy(y, in)
			f(a[:m], b[:m])
			copy(inout, x)
			inout, in, n = inout[m*size:], in[m*size:], n-m
		}
	}
}

func aligned[T any](b []byte) bool {
	var zero T
	return uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) == 0
}

// numberFunc returns the function for an operation that is defined on all numbers, including complex ones, or nil.
func numberFunc[T number](o Op) Func {
	switch o {
	case Sum:
		return elementwise(sum[T])
	case Prod:
		return elementwise(prod[T])
	}
	return nil
}

// orderedFunc adds the operations that compare numbers.
func orderedFunc[T scalar](o Op) Func {
	switch o {
	case Max:
		return elementwise(greatest[T])
	case Min:
		return elementwise(least[T])
	}
	return numberFunc[T](o)
}

// integerFunc adds the logical and bitwise operations, and faster sums of small integers.
func integerFunc[T integer](o Op) Func {
	var zero T
	switch o {
	case Sum:
		switch unsafe.Sizeof(zero) { // for 32 bits and more, sum is as fast
		case 1:
			return sumLanes[T](0x8080808080808080)
		case 2:
			return sumLanes[T](0x8000800080008000)
		}
	case LAnd:
		return elementwise(logicalAnd[T])
	case LOr:
		return elementwise(logicalOr[T])
	case LXor:
		return elementwise(logicalXor[T])
	case BAnd:
		return bitwise(and[uint64], and[uint8])
	case BOr:
		return bitwise(or[uint64], or[uint8])
	case BXor:
		return bitwise(xor[uint64], xor[uint8])
	}
	return orderedFunc[T](o)
}

func sum[T number](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = b[0]+a[0], b[1]+a[1], b[2]+a[2], b[3]+a[3]
		a[4], a[5], a[6], a[7] = b[4]+a[4], b[5]+a[5], b[6]+a[6], b[7]+a[7]
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] = x + inout[i]
	}
}

func prod[T number](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = b[0]*a[0], b[1]*a[1], b[2]*a[2], b[3]*a[3]
		a[4], a[5], a[6], a[7] = b[4]*a[4], b[5]*a[5], b[6]*a[6], b[7]*a[7]
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] = x * inout[i]
	}
}

// greatest implements Max. As in Go's max, NaN is greater than any number.
func greatest[T scalar](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = max(b[0], a[0]), max(b[1], a[1]), max(b[2], a[2]), max(b[3], a[3])
		a[4], a[5], a[6], a[7] = max(b[4], a[4]), max(b[5], a[5]), max(b[6], a[6]), max(b[7], a[7])
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] = max(x, inout[i])
	}
}

// least implements Min. As in Go's min, NaN is less than any number.
func least[T scalar](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = min(b[0], a[0]), min(b[1], a[1]), min(b[2], a[2]), min(b[3], a[3])
		a[4], a[5], a[6], a[7] = min(b[4], a[4]), min(b[5], a[5]), min(b[6], a[6]), min(b[7], a[7])
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] = min(x, inout[i])
	}
}
