package capi

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"
)

// external packs elements and returns the bytes.
func (r *rank) external(at unsafe.Pointer, n int, of any) []byte {
	r.t.Helper()
	size := make([]int64, 1)
	r.ok("Pack_external_size", text("external32"), n, of, unsafe.Pointer(&size[0]))
	out := bytes.Repeat([]byte{0xee}, int(size[0])+3) // with extra bytes before and after
	position := []int64{2}
	r.ok("Pack_external", text("external32"), at, n, of, unsafe.Pointer(&out[0]), len(out),
		unsafe.Pointer(&position[0]))
	if position[0] != 2+size[0] || out[0] != 0xee || out[1] != 0xee || out[len(out)-1] != 0xee {
		r.t.Errorf("%s, %v: position %d of %d, % x", r.abi, of, position[0], size[0], out)
	}
	return out[2 : len(out)-1]
}

// internal unpacks elements.
func (r *rank) internal(in []byte, at unsafe.Pointer, n int, of any) {
	r.t.Helper()
	position := []int64{0}
	r.ok("Unpack_external", text("external32"), unsafe.Pointer(unsafe.SliceData(in)), len(in),
		unsafe.Pointer(&position[0]), at, n, of)
	if int(position[0]) != len(in) {
		r.t.Errorf("%s, %v: position %d of %d", r.abi, of, position[0], len(in))
	}
}

// TestExternal32 checks that basic datatypes have the standard's size, in big-endian order, and are unchanged after
// unpacking.
func TestExternal32(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		for _, test := range []struct{ of, native, external string }{ // in hex; native is for this 64-bit machine
			{"CHAR", "41", "41"}, {"BYTE", "ff", "ff"}, {"C_BOOL", "01", "01"}, {"PACKED", "07", "07"},
			{"SHORT", "0201", "0102"}, {"UNSIGNED_SHORT", "feff", "fffe"}, {"INT", "04030201", "01020304"},
			{"UNSIGNED", "04030201", "01020304"},
			{"LONG", "0403020100000000", "01020304"}, {"LONG", "feffffffffffffff", "fffffffe"},
			{"UNSIGNED_LONG", "feffffff00000000", "fffffffe"},
			{"LONG_LONG_INT", "0807060504030201", "0102030405060708"},
			{"UNSIGNED_LONG_LONG", "0807060504030201", "0102030405060708"},
			{"INT64_T", "0807060504030201", "0102030405060708"}, {"AINT", "0807060504030201", "0102030405060708"},
			{"COUNT", "0807060504030201", "0102030405060708"},
			{"WCHAR", "ac200000", "20ac"}, {"FLOAT", "0000c03f", "3fc00000"},
			{"DOUBLE", "000000000000f83f", "3ff8000000000000"},
			{"C_FLOAT_COMPLEX", "0000c03f00000040", "3fc0000040000000"},
			{"C_DOUBLE_COMPLEX", "000000000000f83f0000000000000040", "3ff80000000000004000000000000000"},
			{"INTEGER", "04030201", "01020304"}, {"LOGICAL", "01000000", "00000001"},
			{"DOUBLE_PRECISION", "000000000000f83f", "3ff8000000000000"},
			{"COMPLEX", "0000c03f00000040", "3fc0000040000000"}, {"2INT", "0100000002000000", "0000000100000002"},
			{"FLOAT_INT", "0000c03f02000000", "3fc0000000000002"}, {"SHORT_INT", "0201000003000000", "010200000003"},
			{"LONG_INT", "04030201000000000500000000000000", "0102030400000005"},
			{"DOUBLE_INT", "000000000000f83f0500000000000000", "3ff800000000000000000005"},
		} {
			native, _ := hex.DecodeString(test.native)
			if got := r.external(unsafe.Pointer(&native[0]), 1, test.of); hex.EncodeToString(got) != test.external {
				r.t.Errorf("%s, %s: %x, want %s", r.abi, test.of, got, test.external)
			}
			external, _ := hex.DecodeString(test.external)
			back := make([]byte, len(native))
			if r.internal(external, unsafe.Pointer(&back[0]), 1, test.of); !bytes.Equal(back, native) {
				r.t.Errorf("%s, %s: %x, want %x", r.abi, test.of, back, native)
			}
		}
	})
}

// TestExternalDerived checks derived datatypes, including datatypes with several basic datatypes, whose elements are
// packed in the order of the datatype.
func TestExternalDerived(t *testing.T) {
	type item struct {
		c byte
		l int64
		d float64
		s int16
	}
	onRanks(t, 1, func(r *rank) {
		_, lengths := ints(1, 1, 1, 1)
		displs := []int64{0, int64(unsafe.Offsetof(item{}.l)), int64(unsafe.Offsetof(item{}.d)),
			int64(unsafe.Offsetof(item{}.s))}
		types := newHandles(r, "CHAR", "LONG", "DOUBLE", "SHORT")
		of, sized, column, dup := newOut(), newOut(), newOut(), newOut()
		r.ok("Type_create_struct", 4, lengths, unsafe.Pointer(&displs[0]), types, of.at())
		r.ok("Type_create_resized", of.get(r), 0, int(unsafe.Sizeof(item{})), sized.at())
		r.ok("Type_vector", 2, 1, 2, sized.get(r), column.at())
		r.ok("Type_dup", column.get(r), dup.at())
		list := []item{{'a', 1, 1, 2}, {'b', -9, 9, 9}, {'c', -1, -2, -3}}
		got := r.external(unsafe.Pointer(&list[0]), 1, dup.get(r))
		if want := "61000000013ff00000000000000002" +
			"63ffffffffc000000000000000fffd"; hex.EncodeToString(got) != want {
			r.t.Errorf("%s: %x, want %s", r.abi, got, want)
		}
		back := make([]item, 3)
		if r.internal(got, unsafe.Pointer(&back[0]), 1, dup.get(r)); back[0] != list[0] || back[1] != (item{}) ||
			back[2] != list[2] {
			r.t.Errorf("%s: %v", r.abi, back)
		}
	})
}

// newHandles returns an array of handles of datatypes.
func newHandles(r *rank, names ...string) unsafe.Pointer {
	p := unsafe.Pointer(unsafe.SliceData(make([]uint64, len(names))))
	for i, name := range names {
		r.l.setHandleAt(p, i, r.l.abi.handle(kindDatatype, r.l.abi.constants[name]))
	}
	return p
}

// TestExternalErrors checks that values and arguments that do not fit are rejected, and that nothing is written.
func TestExternalErrors(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		out, position, long := make([]byte, 16), []int64{0}, []int64{1 << 31}
		at, atPosition, atLong := unsafe.Pointer(&out[0]), unsafe.Pointer(&position[0]), unsafe.Pointer(&long[0])
		form := text("external32")
		r.ends(r.call("Pack_external", form, atLong, 1, "LONG", at, 16, atPosition), "ERR_CONVERSION",
			"does not fit into the 4 bytes")
		r.ok("Pack_external", form, atLong, 1, "UNSIGNED_LONG", at, 16, atPosition)
		long[0] = -1<<31 - 1
		r.ends(r.call("Pack_external", form, atLong, 1, "LONG", at, 16, atPosition), "ERR_CONVERSION")
		long[0] = -1 << 31
		r.ok("Pack_external", form, atLong, 1, "LONG", at, 16, atPosition)
		r.ends(r.call("Pack_external", form, atLong, 1, "LONG", at, 11, atPosition), "ERR_TRUNCATE",
			"has 3 of 11 from position 8")
		r.ends(r.call("Unpack_external", form, at, 11, atPosition, atLong, 1, "LONG"), "ERR_TRUNCATE")
		r.ends(r.call("Pack_external", text("native"), atLong, 1, "LONG", at, 16, atPosition), "ERR_ARG", "external32")
		if position[0] != 8 || !bytes.Equal(out[:9], []byte{0x80, 0, 0, 0, 0x80, 0, 0, 0, 0}) {
			r.t.Errorf("%s: position %d, % x", r.abi, position[0], out)
		}
	})
}

// TestQuad converts 80-bit numbers to 128-bit numbers of the same value and back, with rounding if they have more bits.
func TestQuad(t *testing.T) {
	for _, test := range []struct{ extended, quad string }{ // the bytes of extended, most significant first
		{"3fffc000000000000000", "3fff8000" + strings.Repeat("0", 24)},
		{"00000000000000000000", strings.Repeat("0", 32)},
		{"bfff8000000000000001", "bfff0000000000000002000000000000"},
		{"7fff8000000000000000", "7fff" + strings.Repeat("0", 28)},
		{"ffffc000000000000000", "ffff8000" + strings.Repeat("0", 24)},
		{"00000000000000000001", "00000000000000000002000000000000"},
	} {
		extended, _ := hex.DecodeString(test.extended)
		native, quad, back := make([]byte, 16), make([]byte, 16), make([]byte, 16)
		for i, b := range extended {
			native[9-i] = b
		}
		toQuad(quad, native)
		if toExtended(back, quad); hex.EncodeToString(quad) != test.quad || !bytes.Equal(back, native) {
			t.Errorf("%s: %x, want %s, and back % x", test.extended, quad, test.quad, back)
		}
	}
	for _, test := range []struct{ quad, extended string }{
		{"3fff0000000000000001000000000000", "3fff8000000000000000"}, // half, to even
		{"3fff0000000000000003000000000000", "3fff8000000000000002"},
		{"3fff0000000000000001000000000001", "3fff8000000000000001"},
		{"3fffffffffffffffffff000000000000", "40008000000000000000"}, // to the next power of two
		{"7ffeffffffffffffffff000000000000", "7fff8000000000000000"}, // infinity
		{"0000ffffffffffffffff000000000000", "00018000000000000000"}, // the smallest normal number
		{"7fff0000000000000000000000000001", "7fff8000000000000001"}, // NaN remains NaN
	} {
		quad, _ := hex.DecodeString(test.quad)
		native := make([]byte, 16)
		toExtended(native, quad)
		got := make([]byte, 10)
		binary.BigEndian.PutUint16(got, binary.LittleEndian.Uint16(native[8:]))
		binary.BigEndian.PutUint64(got[2:], binary.LittleEndian.Uint64(native))
		if hex.EncodeToString(got) != test.extended {
			t.Errorf("%s: %x, want %s", test.quad, got, test.extended)
		}
	}
	for range 1000 {
		native, quad, back := make([]byte, 16), make([]byte, 16), make([]byte, 16)
		binary.LittleEndian.PutUint64(native, rand.Uint64()|1<<63)
		binary.LittleEndian.PutUint16(native[8:], uint16(rand.IntN(math.MaxUint16)&^1|1))
		toQuad(quad, native)
		if toExtended(back, quad); !bytes.Equal(native, back) {
			t.Fatalf("% x becomes % x, and back % x", native, quad, back)
		}
	}
}
