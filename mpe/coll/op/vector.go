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
func elementwise[T any](f func(result, left, right []T)) Func {
	return func(result, left, right []byte) {
		var zero T
		size := int(unsafe.Sizeof(zero))
		n := min(len(result), len(left), len(right)) / size
		if n == 0 {
			return
		}
		if aligned[T](result) && aligned[T](left) && aligned[T](right) {
			f(elements[T](result, n), elements[T](left, n), elements[T](right, n))
			return
		}
		var a, b [32]T
		for n > 0 {
			m := min(n, len(a))
			x := unsafe.Slice((*byte)(unsafe.Pointer(&a)), m*size)
			y := unsafe.Slice((*byte)(unsafe.Pointer(&b)), m*size)
			copy(x, left)
			copy(y, right)
			f(a[:m], a[:m], b[:m])
			copy(result, x)
			result, left, right, n = result[m*size:], left[m*size:], right[m*size:], n-m
		}
	}
}

func aligned[T any](b []byte) bool {
	var zero T
	return uintptr(unsafe.Pointer(&b[0]))%unsafe.Alignof(zero) == 0
}

func elements[T any](b []byte, n int) []T { return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n) }

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
		return bitwise(and[uint64], elementwise(and[T]))
	case BOr:
		return bitwise(or[uint64], elementwise(or[T]))
	case BXor:
		return bitwise(xor[uint64], elementwise(xor[T]))
	}
	return orderedFunc[T](o)
}

func sum[T number](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = a[0]+b[0], a[1]+b[1], a[2]+b[2], a[3]+b[3]
		r[4], r[5], r[6], r[7] = a[4]+b[4], a[5]+b[5], a[6]+b[6], a[7]+b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = x + right[i]
	}
}

func prod[T number](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = a[0]*b[0], a[1]*b[1], a[2]*b[2], a[3]*b[3]
		r[4], r[5], r[6], r[7] = a[4]*b[4], a[5]*b[5], a[6]*b[6], a[7]*b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = x * right[i]
	}
}

// greatest implements Max. As in Go's max, NaN is greater than any number.
func greatest[T scalar](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = max(a[0], b[0]), max(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3])
		r[4], r[5], r[6], r[7] = max(a[4], b[4]), max(a[5], b[5]), max(a[6], b[6]), max(a[7], b[7])
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = max(x, right[i])
	}
}

// least implements Min. As in Go's min, NaN is less than any number.
func least[T scalar](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = min(a[0], b[0]), min(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])
		r[4], r[5], r[6], r[7] = min(a[4], b[4]), min(a[5], b[5]), min(a[6], b[6]), min(a[7], b[7])
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = min(x, right[i])
	}
}
