package op

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

// model computes one element, from bytes to bytes, independently of the code under test.
func model(o Op, t Type, in, inout []byte) []byte {
	switch {
	case t <= Uint64:
		return modelInteger(o, t, in, inout)
	case t == Float32:
		x, y := math.Float32frombits(binary.LittleEndian.Uint32(in)),
			math.Float32frombits(binary.LittleEndian.Uint32(inout))
		return binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(modelFloat(o, float64(x), float64(y)))))
	case t == Float64:
		x, y := math.Float64frombits(binary.LittleEndian.Uint64(in)),
			math.Float64frombits(binary.LittleEndian.Uint64(inout))
		return binary.LittleEndian.AppendUint64(nil, math.Float64bits(modelFloat(o, x, y)))
	}
	panic("no model")
}

// modelFloat is exact for float32, too: rounding a sum or product of two of them to float64 and then to float32 is
// the same as rounding once.
func modelFloat(o Op, x, y float64) float64 {
	switch o {
	case Sum:
		return x + y
	case Prod:
		return x * y
	case Max:
		return math.Max(x, y)
	}
	return math.Min(x, y)
}

func modelInteger(o Op, t Type, in, inout []byte) []byte {
	signed := t <= Int64
	load := func(b []byte) *big.Int {
		v := new(big.Int)
		for i := len(b) - 1; i >= 0; i-- {
			v.Or(v.Lsh(v, 8), big.NewInt(int64(b[i])))
		}
		if signed && b[len(b)-1] >= 0x80 {
			v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(b))))
		}
		return v
	}
	x, y, z := load(in), load(inout), new(big.Int)
	truth := func(v *big.Int) bool { return v.Sign() != 0 }
	set := func(b bool) {
		if b {
			z.SetInt64(1)
		}
	}
	switch o {
	case Sum:
		z.Add(x, y)
	case Prod:
		z.Mul(x, y)
	case Max, Min:
		z = x
		if x.Cmp(y) < 0 == (o == Max) {
			z = y
		}
	case LAnd:
		set(truth(x) && truth(y))
	case LOr:
		set(truth(x) || truth(y))
	case LXor:
		set(truth(x) != truth(y))
	case BAnd:
		z.And(x, y)
	case BOr:
		z.Or(x, y)
	case BXor:
		z.Xor(x, y)
	}
	out := make([]byte, len(in))
	mask := big.NewInt(255)
	for i := range out {
		out[i] = byte(new(big.Int).And(new(big.Int).Rsh(z, uint(8*i)), mask).Uint64())
	}
	return out
}

// filled returns n bytes with many zeros, so that logical operations see both truth values.
func filled(rng *rand.Rand, n int, t Type) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	size := t.Size()
	for i := 0; i+size <= n; i += size {
		if rng.IntN(4) == 0 {
			clear(b[i : i+size])
		}
		if t == Float32 && rng.IntN(8) > 0 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(rng.NormFloat64())))
		}
	}
	return b
}

// nan reports whether both floats are NaN. Which NaN results is undefined.
func nan(t Type, a, b []byte) bool {
	switch t {
	case Float32:
		x, y := math.Float32frombits(binary.LittleEndian.Uint32(a)), math.Float32frombits(binary.LittleEndian.Uint32(b))
		return x != x && y != y
	case Float64:
		x, y := math.Float64frombits(binary.LittleEndian.Uint64(a)), math.Float64frombits(binary.LittleEndian.Uint64(b))
		return x != x && y != y
	}
	return false
}

// TestAgainstModel compares every operation on every type with the model, at every length around the lengths of the
// loops, and for any alignment of the operands.
func TestAgainstModel(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for o := Sum; o <= BXor; o++ {
		for typ := Int8; typ <= Float64; typ++ {
			f, err := Lookup(o, typ)
			if typ >= Float32 && o > Min {
				if !errors.Is(err, ErrUndefined) {
					t.Errorf("%v of %v: %v", o, typ, err)
				}
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			size := typ.Size()
			for _, n := range []int{0, 1, 2, 7, 8, 9, 16, 31, 32, 33, 70} {
				for shift := range 3 {
					buf := filled(rng, shift+n*size+8, typ)
					inout := buf[shift : shift+n*size]
					in := append(make([]byte, shift*2%3), filled(rng, n*size, typ)...)[shift*2%3:]
					was, beyond := bytes.Clone(inout), bytes.Clone(buf[shift+n*size:])
					f(inout, in, inout)
					for i := range n {
						at := i * size
						want := model(o, typ, in[at:at+size], was[at:at+size])
						if got := inout[at : at+size]; !bytes.Equal(got, want) && !nan(typ, got, want) {
							t.Fatalf("%v of %v, element %d of %d, shifted by %d: %x ∘ %x = %x, want %x", o, typ, i, n,
								shift,
								in[at:at+size], was[at:at+size], got, want)
						}
					}
					if !bytes.Equal(beyond, buf[shift+n*size:]) {
						t.Fatalf("%v of %v wrote beyond %d elements", o, typ, n)
					}
				}
			}
		}
	}
}

func TestComplex(t *testing.T) {
	for _, typ := range []Type{Complex64, Complex128} {
		enc := func(list ...complex128) (b []byte) {
			for _, z := range list {
				for _, x := range []float64{real(z), imag(z)} {
					if typ == Complex64 {
						b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(x)))
					} else {
						b = binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
					}
				}
			}
			return b
		}
		for o, want := range map[Op]complex128{Sum: 4 + 1i, Prod: 5 - 5i} {
			f, err := Lookup(o, typ)
			if err != nil {
				t.Fatal(err)
			}
			inout := enc(1+2i, 0, 1+2i)
			f(inout, enc(3-1i, 0, 3-1i), inout)
			if o == Prod {
				want = 5 + 5i
			}
			if !bytes.Equal(inout, enc(want, 0, want)) {
				t.Errorf("%v of %v: %x", o, typ, inout)
			}
		}
		if _, err := Lookup(Max, typ); !errors.Is(err, ErrUndefined) {
			t.Errorf("MAX of %v: %v", typ, err)
		}
	}
}

func TestLocations(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	type at struct {
		value float64
		index int32
	}
	for _, test := range []struct {
		o       Op
		x, y, z at
	}{
		{MaxLoc, at{1, 5}, at{2, 7}, at{2, 7}}, {MaxLoc, at{2, 5}, at{1, 7}, at{2, 5}},
		{MaxLoc, at{2, 5}, at{2, 7}, at{2, 5}},
		{MaxLoc, at{2, 7}, at{2, 5}, at{2, 5}}, {MinLoc, at{1, 5}, at{2, 7}, at{1, 5}},
		{MinLoc, at{2, 5}, at{1, 7}, at{1, 7}},
		{MinLoc, at{2, 7}, at{2, -5}, at{2, -5}}, {MaxLoc, at{nan, 1}, at{-inf, 2}, at{-inf, 2}},
		{MaxLoc, at{-inf, 1}, at{nan, 2}, at{-inf, 1}},
		{MinLoc, at{nan, 1}, at{inf, 2}, at{inf, 2}}, {MinLoc, at{inf, 1}, at{nan, 2}, at{inf, 1}},
		{MaxLoc, at{nan, 3}, at{nan, 2}, at{nan, 2}}, {MinLoc, at{nan, 2}, at{nan, 3}, at{nan, 2}},
	} {
		for typ := Int16Loc; typ <= Float64Loc; typ++ {
			if typ < Float32Loc && (test.x.value*0 != 0 || test.y.value*0 != 0) {
				continue
			}
			enc := func(p at) []byte {
				b := make([]byte, typ.Size())
				off := 4
				switch typ {
				case Int16Loc:
					binary.LittleEndian.PutUint16(b, uint16(p.value))
				case Int32Loc:
					binary.LittleEndian.PutUint32(b, uint32(p.value))
				case Int64Loc:
					binary.LittleEndian.PutUint64(b, uint64(p.value))
					off = 8
				case Float32Loc:
					binary.LittleEndian.PutUint32(b, math.Float32bits(float32(p.value)))
				case Float64Loc:
					binary.LittleEndian.PutUint64(b, math.Float64bits(p.value))
					off = 8
				}
				binary.LittleEndian.PutUint32(b[off:], uint32(p.index))
				return b
			}
			f, err := Lookup(test.o, typ)
			if err != nil {
				t.Fatal(err)
			}
			inout := enc(test.y)
			f(inout, enc(test.x), inout)
			if !bytes.Equal(inout, enc(test.z)) {
				t.Errorf("%v of %v: %v ∘ %v = %x, want %v", test.o, typ, test.x, test.y, inout, test.z)
			}
		}
	}
	if _, err := Lookup(Sum, Int32Loc); !errors.Is(err, ErrUndefined) {
		t.Error(err)
	}
	if _, err := Lookup(99, 99); !errors.Is(err, ErrUndefined) {
		t.Error(err)
	}
}

func TestNoAllocation(t *testing.T) {
	f, err := Lookup(Sum, Float64)
	if err != nil {
		t.Fatal(err)
	}
	a, b := make([]byte, 801), make([]byte, 801)
	if n := testing.AllocsPerRun(10, func() { f(a, b, a); f(a[1:], b[1:], a[1:]) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
