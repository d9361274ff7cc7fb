package capi

import (
	"slices"
	"testing"
	"unsafe"
)

// contents is the result of MPI_Type_get_envelope and MPI_Type_get_contents for a datatype.
type contents struct {
	combiner  string
	integers  []int32
	addresses []int64
	types     []handle
}

// contentsOf returns the contents of a datatype. The caller must free handles of derived datatypes in them.
func (r *rank) contentsOf(of any) contents {
	r.t.Helper()
	n, at := ints(-1, -1, -1, -1)
	r.ok("Type_get_envelope", of, at, unsafe.Add(at, 4), unsafe.Add(at, 8), unsafe.Add(at, 12))
	c := contents{integers: make([]int32, n[0]+1), addresses: make([]int64, n[1]+1), types: make([]handle, n[2])}
	for name, v := range r.l.abi.constants {
		if len(name) > 9 && name[:9] == "COMBINER_" && v == int64(n[3]) {
			c.combiner = name[9:]
		}
	}
	c.integers[n[0]], c.addresses[n[1]] = -77, -77 // values after the end of the arrays must not change
	handles := make([]uint64, n[2]+1)
	r.l.setHandleAt(unsafe.Pointer(&handles[0]), int(n[2]), 77)
	if c.combiner != "NAMED" {
		r.ok("Type_get_contents", of, int(n[0]), int(n[1]), int(n[2]), unsafe.Pointer(&c.integers[0]),
			unsafe.Pointer(&c.addresses[0]), unsafe.Pointer(&handles[0]))
	}
	for i := range c.types {
		c.types[i] = handle(r.l.handleAt(unsafe.Pointer(&handles[0]), i))
	}
	if c.integers[n[0]] != -77 || c.addresses[n[1]] != -77 ||
		r.l.handleAt(unsafe.Pointer(&handles[0]), int(n[2])) != 77 {
		r.t.Errorf("%s, %v: more was written than there is", r.abi, of)
	}
	c.integers, c.addresses = c.integers[:n[0]], c.addresses[:n[1]]
	return c
}

// words returns an array of 64-bit integers.
func words(list ...int64) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(slices.Clone(list))) }

// constants returns an array with the values of constants in the ABI.
func (r *rank) constants(names ...string) (list []int32, at unsafe.Pointer) {
	for _, name := range names {
		list = append(list, int32(r.constant(name)))
	}
	return list, unsafe.Pointer(unsafe.SliceData(list))
}

// TestContents checks that the datatype of each constructor has the envelope and contents listed in the standard, and
// that its copy in the contents of another datatype is equal.
func TestContents(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, two := ints(2, 3)
		_, displs := ints(4, 0)
		_, sizes := ints(4, 6)
		_, subsizes := ints(2, 3)
		_, starts := ints(1, 2)
		_, processes := ints(2, 3)
		how, distributions := r.constants("DISTRIBUTE_BLOCK", "DISTRIBUTE_CYCLIC")
		dflt := int32(r.constant("DISTRIBUTE_DFLT_DARG"))
		_, arguments := ints(dflt, 2)
		integer, double := handle(r.l.abi.handle(kindDatatype, r.l.abi.constants["INT"])),
			handle(r.l.abi.handle(kindDatatype, r.l.abi.constants["DOUBLE"]))
		for _, test := range []struct {
			call string
			args []any
			want contents
		}{
			{"Type_dup", []any{"INT"}, contents{"DUP", nil, nil, []handle{integer}}},
			{"Type_contiguous", []any{5, "INT"}, contents{"CONTIGUOUS", []int32{5}, nil, []handle{integer}}},
			{"Type_vector", []any{2, 3, -4, "INT"}, contents{"VECTOR", []int32{2, 3, -4}, nil, []handle{integer}}},
			{"Type_create_hvector", []any{2, 3, 40, "INT"},
				contents{"HVECTOR", []int32{2, 3}, []int64{40}, []handle{integer}}},
			{"Type_indexed", []any{2, two, displs, "INT"},
				contents{"INDEXED", []int32{2, 2, 3, 4, 0}, nil, []handle{integer}}},
			{"Type_create_hindexed", []any{2, two, words(64, -8), "INT"},
				contents{"HINDEXED", []int32{2, 2, 3}, []int64{64, -8}, []handle{integer}}},
			{"Type_create_indexed_block", []any{2, 3, displs, "INT"},
				contents{"INDEXED_BLOCK", []int32{2, 3, 4, 0}, nil, []handle{integer}}},
			{"Type_create_hindexed_block", []any{2, 3, words(64, -8), "INT"},
				contents{"HINDEXED_BLOCK", []int32{2, 3}, []int64{64, -8}, []handle{integer}}},
			{"Type_create_struct", []any{2, two, words(64, 0), newHandles(r, "INT", "DOUBLE")},
				contents{"STRUCT", []int32{2, 2, 3}, []int64{64, 0}, []handle{integer, double}}},
			{"Type_create_resized", []any{"INT", -4, 16}, contents{"RESIZED", nil, []int64{-4, 16}, []handle{integer}}},
			{"Type_create_subarray", []any{2, sizes, subsizes, starts, "ORDER_FORTRAN", "INT"},
				contents{"SUBARRAY", []int32{2, 4, 6, 2, 3, 1, 2, int32(r.constant("ORDER_FORTRAN"))}, nil,
					[]handle{integer}}},
			{"Type_create_darray", []any{6, 4, 2, sizes, distributions, arguments, processes, "ORDER_C", "INT"},
				contents{"DARRAY", []int32{6, 4, 2, 4, 6, how[0], how[1], dflt, 2, 2, 3, int32(r.constant("ORDER_C"))},
					nil, []handle{integer}}},
			{"Type_create_f90_integer", []any{9}, contents{"F90_INTEGER", []int32{9}, nil, nil}},
			{"Type_create_f90_real", []any{6, 30}, contents{"F90_REAL", []int32{6, 30}, nil, nil}},
			{"Type_create_f90_complex", []any{6, 30}, contents{"F90_COMPLEX", []int32{6, 30}, nil, nil}},
		} {
			made := newOut()
			r.ok(test.call, append(test.args, made.at())...)
			got := r.contentsOf(made.get(r))
			if got.combiner != test.want.combiner || !slices.Equal(got.integers, test.want.integers) ||
				!slices.Equal(got.addresses, test.want.addresses) || !slices.Equal(got.types, test.want.types) {
				r.t.Errorf("%s, %s: %+v, want %+v", r.abi, test.call, got, test.want)
			}
			// The contents of a datatype made from it have a new handle for the same datatype.
			outer := newOut()
			r.ok("Type_contiguous", 2, made.get(r), outer.at())
			inner := r.contentsOf(outer.get(r))
			if len(inner.types) != 1 {
				r.t.Errorf("%s, %s: %+v", r.abi, test.call, inner)
				continue
			}
			if len(test.want.types) == 0 && inner.types[0] != made.get(r) { // predefined, although it has no name
				r.t.Errorf("%s, %s within another one: %#x, want %#x", r.abi, test.call, inner.types[0], made.get(r))
			}
			if again := r.contentsOf(inner.types[0]); again.combiner != got.combiner ||
				!slices.Equal(again.integers, got.integers) || !slices.Equal(again.addresses, got.addresses) {
				r.t.Errorf("%s, %s within another one: %+v, want %+v", r.abi, test.call, again, got)
			}
			p := newOut()
			r.l.setHandleAt(p.at(), 0, uint64(inner.types[0]))
			if len(test.want.types) > 0 {
				r.ok("Type_free", p.at())
				r.ok("Type_free", made.at())
			}
			r.ok("Type_free", outer.at())
		}
		if c := r.contentsOf("INT"); c.combiner != "NAMED" || len(c.integers)+len(c.addresses)+len(c.types) != 0 {
			r.t.Errorf("%s: MPI_INT is %+v", r.abi, c)
		}
		_, room := ints(0, 0, 0, 0)
		of := newOut()
		r.ends(r.call("Type_get_contents", "INT", 4, 4, 4, room, room, room), "ERR_TYPE", "MPI_INT is predefined")
		r.ok("Type_vector", 2, 3, 4, "INT", of.at())
		r.ends(r.call("Type_get_contents", of.get(r), 2, 0, 1, room, room, room), "ERR_ARG", "has 3 integers")
		r.ends(r.call("Type_get_contents", of.get(r), 3, 0, 0, room, room, room), "ERR_ARG")
		r.ends(r.call("Type_get_contents", of.get(r), 3, 0, 1, room, room, nil), "ERR_ARG", "null pointer")
		r.ok("Type_free", of.at())
		r.ends(r.call("Type_get_envelope", of.get(r), room, room, room, room), "ERR_TYPE")
	})
}

// TestLargeContents checks that a datatype made with large counts has them only in the large forms of envelope and
// contents (MPI 4.0, section 5.1.13), and that other datatypes have none.
func TestLargeContents(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		_, starts := ints(0, 0)
		_, processes := ints(2, 3)
		how, distributions := r.constants("DISTRIBUTE_BLOCK", "DISTRIBUTE_CYCLIC")
		order := int32(r.constant("ORDER_C"))
		_, arguments := ints(int32(r.constant("DISTRIBUTE_DFLT_DARG")), 2)
		const large = 3_000_000_000
		for _, test := range []struct {
			call      string
			args      []any
			integers  []int32
			addresses []int64
			large     []int64
		}{
			{"Type_contiguous", []any{5, "INT"}, []int32{5}, nil, nil},
			{"Type_create_hvector", []any{2, 3, 40, "INT"}, []int32{2, 3}, []int64{40}, nil},
			{"Type_contiguous_c", []any{large, "INT"}, nil, nil, []int64{large}},
			{"Type_vector_c", []any{2, 3, large, "INT"}, nil, nil, []int64{2, 3, large}},
			{"Type_create_hvector_c", []any{2, 3, large, "INT"}, nil, nil, []int64{2, 3, large}},
			{"Type_indexed_c", []any{2, words(2, 3), words(large, 0), "INT"}, nil, nil, []int64{2, 2, 3, large, 0}},
			{"Type_create_hindexed_c", []any{2, words(2, 3), words(large, 0), "INT"}, nil, nil,
				[]int64{2, 2, 3, large, 0}},
			{"Type_create_indexed_block_c", []any{2, 3, words(large, 0), "INT"}, nil, nil, []int64{2, 3, large, 0}},
			{"Type_create_hindexed_block_c", []any{2, 3, words(large, 0), "INT"}, nil, nil, []int64{2, 3, large, 0}},
			{"Type_create_struct_c", []any{2, words(2, 3), words(large, 0), newHandles(r, "INT", "INT")}, nil, nil,
				[]int64{2, 2, 3, large, 0}},
			{"Type_create_resized_c", []any{"INT", -4, large}, nil, nil, []int64{-4, large}},
			{"Type_create_subarray_c", []any{2, words(4, large), words(2, 3), words(1, 2), "ORDER_C", "INT"},
				[]int32{2, order}, nil, []int64{4, large, 2, 3, 1, 2}},
			{"Type_create_darray_c",
				[]any{6, 4, 2, words(4, large), distributions, arguments, processes, "ORDER_C", "INT"},
				[]int32{6, 4, 2, how[0], how[1], int32(r.constant("DISTRIBUTE_DFLT_DARG")), 2, 2, 3, order}, nil,
				[]int64{4, large}},
		} {
			made := newOut()
			r.ok(test.call, append(test.args, made.at())...)
			counts, at := make([]int64, 4), func(p *int64) unsafe.Pointer { return unsafe.Pointer(p) }
			_, atCombiner := ints(0)
			r.ok("Type_get_envelope_c", made.get(r), at(&counts[0]), at(&counts[1]), at(&counts[2]), at(&counts[3]),
				atCombiner)
			if want := []int64{int64(len(test.integers)), int64(len(test.addresses)),
				int64(len(test.large))}; !slices.Equal(counts[:3], want) || counts[3] < 1 {
				r.t.Errorf("%s, %s: the envelope is %v, want %v and types", r.abi, test.call, counts, want)
				continue
			}
			integers, atIntegers := ints(make([]int32, 12)...)
			addresses, list := make([]int64, 4), make([]int64, 8)
			contents := []any{made.get(r), int(counts[0]), int(counts[1]), int(counts[2]), int(counts[3]), atIntegers,
				at(&addresses[0]), at(&list[0]), newHandles(r, "CHAR", "CHAR")}
			r.ok("Type_get_contents_c", contents...)
			if !slices.Equal(integers[:counts[0]], test.integers) ||
				!slices.Equal(addresses[:counts[1]], test.addresses) || !slices.Equal(list[:counts[2]], test.large) {
				r.t.Errorf("%s, %s: the contents are %v, %v, %v", r.abi, test.call, integers, addresses, list)
			}
			if test.large != nil {
				contents[3] = int(counts[2]) - 1
				r.ends(r.call("Type_get_contents_c", contents...), "ERR_ARG", "large counts")
				r.ends(r.call("Type_get_envelope", made.get(r), starts, starts, starts, starts), "ERR_TYPE",
					"MPI_Type_get_envelope_c")
				r.ends(r.call("Type_get_contents", made.get(r), 9, 9, 9, atIntegers, at(&addresses[0]), starts),
					"ERR_TYPE", "MPI_Type_get_contents_c")
				dup := newOut()
				r.ok("Type_dup", made.get(r), dup.at())
				if d := r.contentsOf(dup.get(r)); d.combiner != "DUP" {
					r.t.Errorf("%s, %s: its duplicate is %+v", r.abi, test.call, d)
				}
				r.ok("Type_free", dup.at())
			}
			r.ok("Type_free", made.at())
		}
	})
}
