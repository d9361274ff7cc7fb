package mpi

import (
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

type meters float32

// form describes how a slice is sent.
type form struct {
	size     int
	datatype protocol.Datatype
	any      bool
}

func formOf[T Number](b []T) form {
	d, any := wireDatatype(TypeOf[T]())
	return form{len(asBytes(b)), d, any}
}

func TestNumberBytes(t *testing.T) {
	for name, c := range map[string]struct {
		got, want form
	}{
		"float32":   {formOf([]float32{1}), form{4, protocol.Float, false}},
		"named":     {formOf([]meters{1, 2}), form{8, protocol.Float, false}},
		"int32":     {formOf([]int32{1, 2, 3}), form{12, protocol.Int, false}},
		"float64":   {formOf([]float64{1}), form{8, protocol.Int, false}},
		"complex64": {formOf([]complex64{1}), form{8, protocol.Int, false}},
		"uint8":     {formOf([]uint8{1}), form{1, protocol.Int, true}},
		"nil":       {formOf([]uint16(nil)), form{0, protocol.Int, false}},
	} {
		if c.got != c.want {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
	b := []uint32{0x04030201}
	if got := asBytes(b); [4]byte(got) != [4]byte{1, 2, 3, 4} {
		t.Errorf("the bytes are %v", got)
	}
	asBytes(b)[0] = 9
	if b[0] != 0x04030209 {
		t.Error("the bytes are a copy")
	}
}
