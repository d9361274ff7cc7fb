package op

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// eachKernel runs f for every kernel that the processor supports, with the loop in Go that defines its results.
func eachKernel(t *testing.T, f func(t *testing.T, o Op, typ Type, combine, loop Func)) {
	for level, table := range supportedKernels() {
		for o := Sum; o <= BXor; o++ {
			for typ := Int8; typ <= Complex128; typ++ {
				if k := table.lookup(o, typ); k != nil {
					t.Run(fmt.Sprintf("%d/%v/%v", level, o, typ), func(t *testing.T) {
						loop := loopFunc(o, typ)
						f(t, o, typ, k.combine(loop, typ.Size()), loop)
					})
				}
			}
		}
	}
}

// interesting contains the values of a type at which kernels are likely to fail: quiet and signaling NaNs with
// different payloads, both zeros, infinities, subnormal numbers, and the extremes of integers.
func interesting(t Type) (values []uint64) {
	switch t {
	case Float32, Complex64:
		for _, v := range []uint32{0, 0x7f800000, 1, 0x7fffff, 0x7f7fffff, 0x3f800000, 0x7fc00001, 0x7fc0ff00, 0x7f800001,
			0x7fa0000f} {
			values = append(values, uint64(v), uint64(v|1<<31))
		}
	case Float64, Complex128:
		for _, v := range []uint64{0, 0x7ff << 52, 1, 1<<52 - 1, math.Float64bits(math.MaxFloat64), math.Float64bits(1),
			0x7ff8<<48 | 1, 0x7ff8<<48 | 0xff00, 0x7ff<<52 | 1, 0x7ff4<<48 | 0xf} {
			values = append(values, v, v|1<<63)
		}
	default:
		values = []uint64{0, 1, math.MaxUint64, 0x8080808080808080, 0x7f7f7f7f7f7f7f7f, 1 << 63, 1<<63 - 1, 1 << 31,
			1<<31 - 1, 1 << 32, 1<<32 - 1, 1 << 15, 1<<15 - 1, 1 << 7, 1<<7 - 1}
	}
	return values
}

// fill fills b with random bytes and interesting values.
func fill(rng *rand.Rand, b []byte, t Type) {
	size := min(t.Size(), 8) // the two halves of a complex128 are float64
	if t == Complex64 {
		size = 4
	}
	values := interesting(t)
	var word [8]byte
	for i := 0; i < len(b); i += size {
		v := rng.Uint64()
		if rng.IntN(2) == 0 {
			v = values[rng.IntN(len(values))]
		}
		binary.LittleEndian.PutUint64(word[:], v)
		copy(b[i:], word[:size])
	}
}

// area is memory between pages that cannot be accessed, if the system has them.
type area []byte

// sub returns n bytes at an offset, or −1−offset bytes before the end if the offset is negative.
func (a area) sub(at, n int) []byte {
	if at < 0 {
		at += len(a) + 1 - n
	}
	return a[at : at+n : at+n]
}

// TestKernels compares all kernels with the loops in Go, bit for bit, for lengths of up to 260 elements, for different
// alignments, and for each vector in which the result may be stored. Vectors begin or end at the bounds of accessible
// memory, so that a kernel that accesses more than its vectors crashes.
func TestKernels(t *testing.T) {
	const longest = 260
	areas := [3]area{newArea(t, 20*longest), newArea(t, 20*longest), newArea(t, 20*longest)}
	placements := [][3]int{{0, 0, 0}, {-1, -1, -1}, {-1, 0, -2}, {1, 8, -4}, {8, 3, 16}}
	eachKernel(t, func(t *testing.T, o Op, typ Type, combine, loop Func) {
		rng := rand.New(rand.NewPCG(uint64(o), uint64(typ)))
		size := typ.Size()
		check := func(n int, at [3]int) {
			t.Helper()
			result, left, right := areas[0].sub(at[0], n), areas[1].sub(at[1], n), areas[2].sub(at[2], n)
			fill(rng, left, typ)
			fill(rng, right, typ)
			a, b := bytes.Clone(left), bytes.Clone(right)
			want := make([]byte, n)
			loop(want, a, b)
			for i := range areas[0] {
				areas[0][i] = 0xa5
			}
			combine(result, left, right)
			checkResult(t, n, at, result, a, b, want, size)
			if !bytes.Equal(left, a) || !bytes.Equal(right, b) {
				t.Fatalf("%d bytes at %v: an operand has changed", n, at)
			}
			around := bytes.Count(areas[0], []byte{0xa5}) - bytes.Count(result, []byte{0xa5})
			if around != len(areas[0])-n {
				t.Fatalf("%d bytes at %v: bytes outside of the result have changed", n, at)
			}
			combine(left, left, right)
			checkResult(t, n, at, left, a, b, want, size)
			copy(left, a)
			combine(right, left, right)
			checkResult(t, n, at, right, a, b, want, size)
			loop(want, a, a)
			combine(left, left, left)
			checkResult(t, n, at, left, a, a, want, size)
		}
		for n := range longest + 1 {
			check(n*size, placements[n%len(placements)])
			check(n*size, placements[(n+1)%len(placements)])
		}
	})
}

// TestLongVectors compares vectors that several calls of a kernel combine.
func TestLongVectors(t *testing.T) {
	const longest = 3 * kernelMax
	rng := rand.New(rand.NewPCG(1, 1))
	left, right, result, want := make([]byte, longest), make([]byte, longest), make([]byte, longest), make([]byte, longest)
	fill(rng, left, Uint64)
	fill(rng, right, Uint64)
	eachKernel(t, func(t *testing.T, o Op, typ Type, combine, loop Func) {
		if typ != Uint64 {
			return
		}
		for _, n := range []int{kernelMax, kernelMax + 8, kernelMax + kernelMin, 2*kernelMax + 8, longest} {
			clear(result)
			combine(result[:n], left[:n], right[:n])
			loop(want[:n], left[:n], right[:n])
			checkResult(t, n, [3]int{}, result[:n], left, right, want[:n], typ.Size())
		}
	})
}

func checkResult(t *testing.T, n int, at [3]int, got, left, right, want []byte, size int) {
	t.Helper()
	if bytes.Equal(got, want) {
		return
	}
	for i := 0; i < n; i += size {
		if !bytes.Equal(got[i:i+size], want[i:i+size]) {
			t.Fatalf("%d bytes at %v, at offset %d: %x ∘ %x = %x, want %x", n, at, i, left[i:i+size], right[i:i+size],
				got[i:i+size], want[i:i+size])
		}
	}
}

// TestIncompleteElements checks that bytes beyond the last whole element or the shortest vector stay unchanged.
func TestIncompleteElements(t *testing.T) {
	for o := Sum; o <= MinLoc; o++ {
		for typ := Int8; typ <= Float64Loc; typ++ {
			f, err := Lookup(o, typ)
			if err != nil {
				continue
			}
			for _, whole := range []int{0, 1, 5, 40} {
				n := (whole+1)*typ.Size() - 1
				for _, lengths := range [][3]int{{n, n, n}, {n + 9, n, n + 9}, {n + 9, n + 9, n}} {
					result := bytes.Repeat([]byte{0xa5}, n+9)
					operand := bytes.Repeat([]byte{3}, n+9)
					f(result[:lengths[0]], operand[:lengths[1]], operand[:lengths[2]])
					if end := whole * typ.Size(); !bytes.Equal(result[end:], bytes.Repeat([]byte{0xa5}, len(result)-end)) {
						t.Errorf("%v of %v of lengths %v: bytes after %d have changed: %x", o, typ, lengths, end, result[end:])
					}
				}
			}
		}
	}
}

func FuzzKernels(f *testing.F) {
	f.Add(uint8(Sum), uint8(Int8), uint8(0), bytes.Repeat([]byte{0xff, 1, 0x80}, 100))
	f.Add(uint8(Max), uint8(Float64), uint8(3), bytes.Repeat([]byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f, 0}, 50))
	f.Add(uint8(Prod), uint8(Uint64), uint8(8), bytes.Repeat([]byte{0xfe, 0xff, 7}, 70))
	f.Fuzz(func(t *testing.T, operation, of, shift uint8, operands []byte) {
		o, typ := Op(operation), Type(of)
		if o == 0 || typ == 0 || o > BXor || typ > Complex128 || loopFunc(o, typ) == nil {
			return
		}
		loop, n := loopFunc(o, typ), len(operands)/2
		left, right := operands[:n], operands[n:2*n]
		want := bytes.Repeat([]byte{0xa5}, n)
		loop(want, left, right)
		for _, table := range supportedKernels() {
			k := table.lookup(o, typ)
			if k == nil {
				continue
			}
			got := bytes.Repeat([]byte{0xa5}, n+int(shift))[shift:]
			k.combine(loop, typ.Size())(got, left, right)
			if !bytes.Equal(got, want) {
				t.Fatalf("%v of %v: %x ∘ %x = %x, want %x", o, typ, left, right, got, want)
			}
		}
	})
}

func TestTriad(t *testing.T) {
	left, right := make([]byte, 1000), make([]byte, 1000)
	for i := range 125 {
		binary.LittleEndian.PutUint64(left[8*i:], math.Float64bits(float64(i)))
		binary.LittleEndian.PutUint64(right[8*i:], math.Float64bits(float64(i*i)))
	}
	result, want := make([]byte, 1000), make([]byte, 1000)
	streamTriad()(result, left, right)
	triadLoop(want, left, right)
	if !bytes.Equal(result, want) {
		t.Error("the loops differ")
	}
}
