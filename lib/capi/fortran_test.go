package capi

import (
	"testing"
	"unsafe"
)

// TestNumbersOfFortran checks that each precision and range has one datatype, of the first kind with both.
func TestNumbersOfFortran(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		made := func(name string, wanted ...any) uint64 {
			t.Helper()
			p := new(uint64)
			r.ok(name, append(wanted, unsafe.Pointer(p))...)
			return r.l.handleAt(unsafe.Pointer(p), 0)
		}
		for _, tc := range []struct {
			call   string
			wanted []any
			bytes  int32
		}{
			{"Type_create_f90_integer", []any{2}, 1}, {"Type_create_f90_integer", []any{9}, 4},
			{"Type_create_f90_integer", []any{10}, 8},
			{"Type_create_f90_real", []any{6, 37}, 4}, {"Type_create_f90_real", []any{6, 38}, 8},
			{"Type_create_f90_real", []any{"UNDEFINED", 37}, 4},
			{"Type_create_f90_real", []any{16, "UNDEFINED"}, 16}, {"Type_create_f90_complex", []any{15, 307}, 16},
		} {
			h := made(tc.call, tc.wanted...)
			if again := made(tc.call, tc.wanted...); again != h {
				t.Errorf("%s: %s %v: %#x, then %#x", r.abi, tc.call, tc.wanted, h, again)
			}
			size := new([4]int32)
			r.ok("Type_size", handle(h), unsafe.Pointer(size))
			if size[0] != tc.bytes {
				t.Errorf("%s: %s %v has %d bytes, not %d", r.abi, tc.call, tc.wanted, size[0], tc.bytes)
			}
			r.ok("Type_get_envelope", handle(h), unsafe.Pointer(&size[0]), unsafe.Pointer(&size[1]),
				unsafe.Pointer(&size[2]), unsafe.Pointer(&size[3]))
			if int(size[0]) != len(tc.wanted) || size[1] != 0 || size[2] != 0 ||
				size[3] < int32(r.l.abi.constants["COMBINER_F90_REAL"]) {
				t.Errorf("%s: the envelope of %s %v is %v", r.abi, tc.call, tc.wanted, *size)
			}
		}
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		p := new(uint64)
		if code := r.call("Type_create_f90_integer", 39,
			unsafe.Pointer(p)); code&0xff != int(r.l.abi.constants["ERR_ARG"]) {
			t.Errorf("%s: integers of 39 digits: %d", r.abi, code)
		}
		*p = made("Type_create_f90_integer", 9)
		if code := r.call("Type_free", unsafe.Pointer(p)); code&0xff != int(r.l.abi.constants["ERR_TYPE"]) {
			t.Errorf("%s: a predefined datatype is freed: %d", r.abi, code)
		}
	})
}
