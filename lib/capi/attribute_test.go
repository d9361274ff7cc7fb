package capi

import (
	"slices"
	"testing"
	"unsafe"
)

// attributeCalls contains the calls for the attributes of one kind of object.
type attributeCalls struct {
	newKey, freeKey, set, get, remove string
	// object makes an object. dup and free are the calls for such objects.
	object    func(r *rank, o out)
	dup, free string
	of        kind
}

func attributeFamilies() map[string]attributeCalls {
	dup := func(r *rank, o out) { r.ok("Comm_dup", "COMM_WORLD", o.at()) }
	return map[string]attributeCalls{
		"communicator": {"Comm_create_keyval", "Comm_free_keyval", "Comm_set_attr", "Comm_get_attr", "Comm_delete_attr",
			dup, "Comm_dup", "Comm_free", kindComm},
		"MPI-1": {"Keyval_create", "Keyval_free", "Attr_put", "Attr_get", "Attr_delete", dup, "Comm_dup", "Comm_free",
			kindComm},
		"datatype": {"Type_create_keyval", "Type_free_keyval", "Type_set_attr", "Type_get_attr", "Type_delete_attr",
			func(r *rank, o out) { r.ok("Type_contiguous", 2, "INT", o.at()) }, "Type_dup", "Type_free", kindDatatype},
	}
}

// key makes a key, with numbers in place of its functions.
func (f *attributeCalls) key(r *rank, copyFunction, deleteFunction any) int {
	key, atKey := ints(0)
	r.ok(f.newKey, copyFunction, deleteFunction, atKey, nil)
	return int(key[0])
}

// value returns an attribute, or -1 if it is not set.
func (f *attributeCalls) value(r *rank, o out, key int) int {
	r.t.Helper()
	value := newOut()
	flag, atFlag := ints(9)
	r.ok(f.get, o.get(r), key, value.at(), atFlag)
	switch flag[0] {
	case 0:
		return -1
	case 1:
		return int(*value.memory)
	}
	r.t.Errorf("%s: flag %d", f.get, flag[0])
	return -1
}

// TestAttributes checks that values are set, replaced, copied and deleted with the functions of their keys.
func TestAttributes(t *testing.T) {
	for name, f := range attributeFamilies() {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
				o, d := newOut(), newOut()
				f.object(r, o)
				key, second := f.key(r, 11, 12), f.key(r, 21, 22)
				expect := func(of out, want, wantSecond int) {
					r.t.Helper()
					if a, b := f.value(r, of, key), f.value(r, of, second); a != want || b != wantSecond {
						r.t.Errorf("values %d and %d, want %d and %d", a, b, want, wantSecond)
					}
				}
				expect(o, -1, -1)
				r.ok(f.set, o.get(r), key, 100)
				r.called()
				expect(o, 100, -1)
				r.ok(f.set, o.get(r), key, 200)
				r.called("delete 12 value 100")
				r.ok(f.set, o.get(r), second, 300)
				expect(o, 200, 300)
				r.ok(f.dup, o.get(r), d.at())
				r.called("copy 11", "copy 21")
				expect(d, 200, 300)
				r.ok(f.remove, d.get(r), key)
				r.called("delete 12 value 200")
				expect(d, -1, 300)
				expect(o, 200, 300)
				r.ok(f.free, d.at())
				r.called("delete 22 value 300")
				r.back.drop = true
				r.ok(f.dup, o.get(r), d.at())
				r.called("copy 11", "copy 21")
				expect(d, -1, -1)
				r.ok(f.free, d.at())
				r.called()
				r.ok(f.free, o.at()) // the last attribute set is deleted first
				r.called("delete 22 value 300", "delete 12 value 200")
				if !o.null(r, f.of) {
					r.t.Errorf("%#x was freed", o.get(r))
				}
			})
		})
	}
}

// TestAttributeFunctionErrors checks that a call returns the error of a callback, and that the attribute is unchanged.
func TestAttributeFunctionErrors(t *testing.T) {
	for name, f := range attributeFamilies() {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
				class, atClass := ints(0)
				code, atCode := ints(0)
				r.ok("Add_error_class", atClass)
				r.ok("Add_error_code", int(class[0]), atCode)
				o := newOut()
				f.object(r, o)
				key := f.key(r, 11, 12)
				r.ok(f.set, o.get(r), key, 100)
				r.back.refuse = int(code[0])
				before := o.get(r)
				d := newOut()
				for _, x := range []struct {
					what   string
					got    int
					called string
				}{
					{"dup", r.call(f.dup, o.get(r), d.at()), "copy 11"},
					{"set", r.call(f.set, o.get(r), key, 200), "delete 12 value 100"},
					{"delete", r.call(f.remove, o.get(r), key), "delete 12 value 100"},
					{"free", r.call(f.free, o.at()), "delete 12 value 100"},
				} {
					if x.got != int(code[0]) {
						r.t.Errorf("%s: error %d, want %d", x.what, x.got, code[0])
					}
					if len(r.back.calls) == 0 || r.back.calls[0] != x.called {
						r.t.Errorf("%s: called %v", x.what, r.back.calls)
						continue
					}
					r.back.calls = r.back.calls[1:]
				}
				r.called()
				if v := f.value(r, o, key); v != 100 || o.get(r) != before {
					r.t.Errorf("value %d of %#x, want 100 of %#x", v, o.get(r), before)
				}
				r.back.refuse = 0
				r.ok(f.free, o.at())
				r.called("delete 12 value 100")
			})
		})
	}
}

// TestAttributeKeys checks keys that were freed, that are for another kind of object, predefined or invalid.
func TestAttributeKeys(t *testing.T) {
	for name, f := range attributeFamilies() {
		t.Run(name, func(t *testing.T) {
			onRanks(t, 1, func(r *rank) {
				r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
				o, d := newOut(), newOut()
				f.object(r, o)
				key := f.key(r, nil, nil)
				r.ok(f.set, o.get(r), key, 100)
				freed, atFreed := ints(int32(key))
				if r.ok(f.freeKey, atFreed); int(freed[0]) != r.constant("KEYVAL_INVALID") {
					r.t.Errorf("key %#x was freed", freed[0])
				}
				r.fails("ERR_KEYVAL", f.set, o.get(r), key, 200)
				if v := f.value(r, o, key); v != 100 {
					r.t.Errorf("value %d of a key that was freed", v)
				}
				r.ok(f.dup, o.get(r), d.at())
				if v := f.value(r, d, key); v != -1 {
					r.t.Errorf("the duplicate has %d without a copy function", v)
				}
				r.ok(f.free, d.at())
				flag, atFlag := ints(9)
				other := attributeFamilies()[map[kind]string{kindComm: "datatype", kindDatatype: "communicator"}[f.of]]
				for what, k := range map[string]int{"the other kind": other.key(r, nil, nil), "none": key + 100,
					"invalid": r.constant("KEYVAL_INVALID")} {
					r.fails("ERR_KEYVAL", f.set, o.get(r), k, 1)
					r.fails("ERR_KEYVAL", f.remove, o.get(r), k)
					r.fails("ERR_KEYVAL", f.get, o.get(r), k, d.at(), atFlag)
					if flag[0] != 9 {
						r.t.Errorf("%s: flag %d", what, flag[0])
					}
				}
				_, atNone := ints(int32(key + 100))
				r.fails("ERR_KEYVAL", f.freeKey, atNone)
				if _, ok := r.l.abi.constants["DUP_FN"]; ok { // a constant only in the standard ABI
					same := f.key(r, "DUP_FN", nil)
					r.ok(f.set, o.get(r), same, 7)
					r.ok(f.dup, o.get(r), d.at())
					if v := f.value(r, d, same); v != 7 {
						r.t.Errorf("the duplicate has %d", v)
					}
					r.ok(f.free, d.at())
				}
				r.ok(f.free, o.at())
				r.called()
			})
		})
	}
}

// TestFixedAttributes checks that the library's attributes have values and cannot be changed.
func TestFixedAttributes(t *testing.T) {
	onRanks(t, 2, func(r *rank) {
		r.ok("Comm_set_errhandler", "COMM_WORLD", "ERRORS_RETURN")
		flag, atFlag := ints(0)
		value := new(*int32)
		var got []int32
		for _, name := range []string{"UNIVERSE_SIZE", "APPNUM", "WTIME_IS_GLOBAL"} {
			flag[0] = 9
			if r.ok("Comm_get_attr", "COMM_WORLD", name, unsafe.Pointer(value), atFlag); flag[0] != 1 {
				r.t.Errorf("%s: flag %d", name, flag[0])
				continue
			}
			got = append(got, **value)
			r.fails("ERR_KEYVAL", "Comm_set_attr", "COMM_WORLD", name, 1)
			r.fails("ERR_KEYVAL", "Comm_delete_attr", "COMM_WORLD", name)
		}
		if !slices.Equal(got, []int32{2, 0, 0}) {
			r.t.Errorf("values %v", got)
		}
		if r.ok("Comm_get_attr", "COMM_WORLD", "TAG_UB", unsafe.Pointer(value), atFlag); **value < 32767 {
			r.t.Errorf("MPI_TAG_UB is %d", **value)
		}
	})
}
