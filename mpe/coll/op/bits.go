package op

// Bitwise operations are the same for all integer types, so these functions process 64 bits at a time. Sums of small
// integers do so too: they suppress carries from one integer to the next.

// bitwise returns a Func that applies the function words to aligned 64-bit words, and the function rest to the
// remaining bytes.
func bitwise(words func(result, left, right []uint64), rest Func) Func {
	return func(result, left, right []byte) {
		n := min(len(result), len(left), len(right))
		result, left, right = result[:n], left[:n], right[:n]
		if whole := n &^ 7; whole > 0 && aligned[uint64](result) && aligned[uint64](left) && aligned[uint64](right) {
			words(elements[uint64](result, whole/8), elements[uint64](left, whole/8), elements[uint64](right, whole/8))
			result, left, right = result[whole:], left[whole:], right[whole:]
		}
		rest(result, left, right)
	}
}

func and[T integer](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = a[0]&b[0], a[1]&b[1], a[2]&b[2], a[3]&b[3]
		r[4], r[5], r[6], r[7] = a[4]&b[4], a[5]&b[5], a[6]&b[6], a[7]&b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = x & right[i]
	}
}

func or[T integer](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = a[0]|b[0], a[1]|b[1], a[2]|b[2], a[3]|b[3]
		r[4], r[5], r[6], r[7] = a[4]|b[4], a[5]|b[5], a[6]|b[6], a[7]|b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = x | right[i]
	}
}

func xor[T integer](result, left, right []T) {
	for len(result) >= 8 && len(left) >= 8 && len(right) >= 8 {
		r, a, b := (*[8]T)(result), (*[8]T)(left), (*[8]T)(right)
		r[0], r[1], r[2], r[3] = a[0]^b[0], a[1]^b[1], a[2]^b[2], a[3]^b[3]
		r[4], r[5], r[6], r[7] = a[4]^b[4], a[5]^b[5], a[6]^b[6], a[7]^b[7]
		result, left, right = result[8:], left[8:], right[8:]
	}
	for i, x := range left[:len(result)] {
		result[i] = x ^ right[i]
	}
}

// sumLanes adds integers of less than 64 bits, several per word. high contains the highest bit of each integer. These
// bits are added without carry, so that no carry reaches the next integer.
func sumLanes[T integer](high uint64) Func {
	return bitwise(func(result, left, right []uint64) {
		for len(result) >= 4 && len(left) >= 4 && len(right) >= 4 {
			r, a, b := (*[4]uint64)(result), (*[4]uint64)(left), (*[4]uint64)(right)
			r[0], r[1] = addLanes(a[0], b[0], high), addLanes(a[1], b[1], high)
			r[2], r[3] = addLanes(a[2], b[2], high), addLanes(a[3], b[3], high)
			result, left, right = result[4:], left[4:], right[4:]
		}
		for i, x := range left[:len(result)] {
			result[i] = addLanes(x, right[i], high)
		}
	}, elementwise(sum[T]))
}

func addLanes(a, b, high uint64) uint64 { return (a&^high + b&^high) ^ (a^b)&high }

// The logical operations treat every value except 0 as true.

func logicalAnd[T integer](result, left, right []T) {
	for i, x := range left[:len(result)] {
		result[i] = boolValue[T](x != 0 && right[i] != 0)
	}
}

func logicalOr[T integer](result, left, right []T) {
	for i, x := range left[:len(result)] {
		result[i] = boolValue[T](x|right[i] != 0)
	}
}

func logicalXor[T integer](result, left, right []T) {
	for i, x := range left[:len(result)] {
		result[i] = boolValue[T]((x != 0) != (right[i] != 0))
	}
}

func boolValue[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}
