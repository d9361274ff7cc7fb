package op

import "unsafe"

// Bitwise operations are the same for all integer types, so these functions process 64 bits at a time. Sums of small
// integers do so too: they suppress carries from one integer to the next.

// bitwise returns a Func that applies the function words to aligned 64-bit words, and the function rest to the
// remaining bytes.
func bitwise(words func(inout, in []uint64), rest Func) Func {
	return func(inout, in []byte) {
		n := min(len(inout), len(in))
		inout, in = inout[:n], in[:n]
		if whole := n &^ 7; whole > 0 && aligned[uint64](inout) && aligned[uint64](in) {
			words(unsafe.Slice((*uint64)(unsafe.Pointer(&inout[0])), whole/8),
				unsafe.Slice((*uint64)(unsafe.Pointer(&in[0])), whole/8))
			inout, in = inout[whole:], in[whole:]
		}
		rest(inout, in)
	}
}

func and[T uint8 | uint64](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = b[0]&a[0], b[1]&a[1], b[2]&a[2], b[3]&a[3]
		a[4], a[5], a[6], a[7] = b[4]&a[4], b[5]&a[5], b[6]&a[6], b[7]&a[7]
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] &= x
	}
}

func or[T uint8 | uint64](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = b[0]|a[0], b[1]|a[1], b[2]|a[2], b[3]|a[3]
		a[4], a[5], a[6], a[7] = b[4]|a[4], b[5]|a[5], b[6]|a[6], b[7]|a[7]
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] |= x
	}
}

func xor[T uint8 | uint64](inout, in []T) {
	for len(inout) >= 8 && len(in) >= 8 {
		a, b := (*[8]T)(inout), (*[8]T)(in)
		a[0], a[1], a[2], a[3] = b[0]^a[0], b[1]^a[1], b[2]^a[2], b[3]^a[3]
		a[4], a[5], a[6], a[7] = b[4]^a[4], b[5]^a[5], b[6]^a[6], b[7]^a[7]
		inout, in = inout[8:], in[8:]
	}
	for i, x := range in[:len(inout)] {
		inout[i] ^= x
	}
}

// sumLanes adds integers of less than 64 bits, several per word. high contains the highest bit of each integer. These
// bits are added without carry, so that no carry reaches the next integer.
func sumLanes[T integer](high uint64) Func {
	return bitwise(func(inout, in []uint64) {
		for len(inout) >= 4 && len(in) >= 4 {
			a, b := (*[4]uint64)(inout), (*[4]uint64)(in)
			a[0], a[1] = addLanes(b[0], a[0], high), addLanes(b[1], a[1], high)
			a[2], a[3] = addLanes(b[2], a[2], high), addLanes(b[3], a[3], high)
			inout, in = inout[4:], in[4:]
		}
		for i, x := range in[:len(inout)] {
			inout[i] = addLanes(x, inout[i], high)
		}
	}, elementwise(sum[T]))
}

func addLanes(a, b, high uint64) uint64 { return (a&^high + b&^high) ^ (a^b)&high }

// The logical operations treat every value except 0 as true.

func logicalAnd[T integer](inout, in []T) {
	for i, x := range in[:len(inout)] {
		inout[i] = boolValue[T](x != 0 && inout[i] != 0)
	}
}

func logicalOr[T integer](inout, in []T) {
	for i, x := range in[:len(inout)] {
		inout[i] = boolValue[T](x|inout[i] != 0)
	}
}

func logicalXor[T integer](inout, in []T) {
	for i, x := range in[:len(inout)] {
		inout[i] = boolValue[T]((x != 0) != (inout[i] != 0))
	}
}

func boolValue[T integer](b bool) T {
	if b {
		return 1
	}
	return 0
}
