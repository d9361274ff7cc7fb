package capi

import (
	"slices"
	"testing"
	"unsafe"
)

// TestRenamedDatatype checks that a reduction with a predefined datatype, or a duplicate of it, does not depend on the
// name of the datatype.
func TestRenamedDatatype(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		if r.abi != "MPICH" {
			return // only MPICH has Fortran's datatypes here
		}
		r.ok("Type_set_name", "2REAL", unsafe.Pointer(unsafe.StringData("mine\x00")))
		made := new([2]int32)
		r.ok("Type_dup", "2REAL", unsafe.Pointer(made))
		for _, of := range []any{"2REAL", handle(uint32(made[0]))} {
			in, inout := new([2]float32), new([2]float32)
			*in, *inout = [2]float32{3, 7}, [2]float32{2, 1}
			r.ok("Reduce_local", unsafe.Pointer(in), unsafe.Pointer(inout), 1, of, "MAXLOC")
			if !slices.Equal(inout[:], in[:]) {
				t.Errorf("%v: %v, not %v", of, *inout, *in)
			}
		}
	})
}

// TestOneSidedOperations checks that the operations of one-sided communication exist, but not for reductions.
func TestOneSidedOperations(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		flag, word := new(int32), new(int32)
		r.ok("Op_commutative", "BXOR", unsafe.Pointer(flag))
		if *flag != 1 {
			t.Errorf("%s: MPI_BXOR does not commute", r.abi)
		}
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		for _, name := range []string{"REPLACE", "NO_OP"} {
			r.ok("Op_commutative", name, unsafe.Pointer(flag))
			if *flag != 0 {
				t.Errorf("%s: MPI_%s commutes", r.abi, name)
			}
			if code := r.call("Reduce_local", unsafe.Pointer(word), unsafe.Pointer(word), 1, "INT",
				name); code&0xff != int(r.l.abi.constants["ERR_OP"]) {
				t.Errorf("%s: a reduction by MPI_%s: %d", r.abi, name, code)
			}
		}
	})
}
