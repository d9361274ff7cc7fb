package capi

import (
	"testing"
	"unsafe"
)

func text(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData([]byte(s + "\x00"))) }

// TestSplitType checks the kinds of splits. Ranks without a known resource of the kind get no communicator.
func TestSplitType(t *testing.T) {
	onRanks(t, 2, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		info := newOut()
		kind := func(name string) int { return int(r.l.abi.constants[name]) }
		for i, x := range []struct {
			kind       int
			key, value string
			size       int32 // of the communicator, 0 for none
			fails      bool
		}{
			{kind: kind("COMM_TYPE_SHARED"), size: 2},
			{kind: kind("UNDEFINED")},
			{kind: kind("COMM_TYPE_HW_UNGUIDED")},
			{kind: kind("COMM_TYPE_HW_GUIDED")},
			{kind: kind("COMM_TYPE_HW_GUIDED"), key: "mpi_hw_resource_type", value: "l3cache"},
			{kind: kind("COMM_TYPE_HW_GUIDED"), key: "mpi_hw_resource_type", value: "mpi_shared_memory", size: 2},
			{kind: mpichNeighborhood, key: "nbhd_common_dirname", value: ".", size: 2, fails: r.abi != "MPICH"},
			{kind: mpichNeighborhood, key: "nbhd_common_dirname", value: "no such directory", fails: r.abi != "MPICH"},
			{kind: mpichNeighborhood, fails: r.abi != "MPICH"},
			{kind: 77, fails: true},
			{kind: 0, fails: true},
		} {
			r.ok("Info_create", info.at())
			if x.key != "" {
				r.ok("Info_set", info.get(r), text(x.key), text(x.value))
			}
			made := newOut()
			code := r.call("Comm_split_type", "COMM_WORLD", x.kind, 0, info.get(r), made.at())
			if class, _ := r.l.codes.classOfCode(code); x.fails != (code != 0) ||
				x.fails && int64(class) != r.l.abi.constants["ERR_ARG"] {
				r.t.Errorf("%d: code %d", i, code)
			}
			size, atSize := ints(0)
			if code == 0 && made.get(r) != handle(r.l.abi.null[kindComm]) {
				r.ok("Comm_size", made.get(r), atSize)
				r.ok("Comm_free", made.at())
			}
			if !x.fails && size[0] != x.size {
				r.t.Errorf("%d: %d ranks, not %d", i, size[0], x.size)
			}
			r.ok("Info_free", info.at())
		}
	})
}
