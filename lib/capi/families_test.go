package capi

import (
	"slices"
	"testing"
	"unsafe"
)

// TestPersistent starts persistent requests, and waits for any and some of them.
func TestPersistent(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, atSent := ints(7, 8)
		got, atGot := ints(0, 0)
		list := new([2]uint64)
		at := func(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(list), i*r.l.abi.handleLen) }
		r.ok("Recv_init", atGot, 2, "INT", 0, 4, "COMM_WORLD", at(0))
		r.ok("Send_init", atSent, 2, "INT", 0, 4, "COMM_WORLD", at(1))
		r.ok("Startall", 2, at(0))
		var ended []int32
		for range 2 {
			index, atIndex := ints(9)
			r.ok("Waitany", 2, at(0), atIndex, "STATUS_IGNORE")
			ended = append(ended, index[0])
		}
		if slices.Sort(ended); !slices.Equal(ended, []int32{0, 1}) || got[0] != 7 || got[1] != 8 {
			r.t.Errorf("any: %v, %v", ended, got)
		}
		ended, got[1] = nil, 0
		r.ok("Start", at(1))
		r.ok("Start", at(0))
		for len(ended) < 2 {
			n, atN := ints(0)
			indices, atIndices := ints(9, 9)
			r.ok("Waitsome", 2, at(0), atN, atIndices, "STATUSES_IGNORE")
			if n[0] < 1 || n[0] > 2 {
				r.t.Errorf("some: %d", n[0])
				return
			}
			ended = append(ended, indices[:n[0]]...)
		}
		if slices.Sort(ended); !slices.Equal(ended, []int32{0, 1}) || got[1] != 8 {
			r.t.Errorf("some: %v, %v", ended, got)
		}
		r.ok("Request_free", at(1))
		r.ok("Request_free", at(0))
	})
}

// TestNoElements checks that zero elements without a datatype are an empty message.
func TestNoElements(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, at := ints(1)
		r.ok("Sendrecv", nil, 0, "DATATYPE_NULL", 0, 1, at, 1, "INT", 0, 1, "COMM_WORLD", "STATUS_IGNORE")
		r.ok("Sendrecv", at, 0, "INT", 0, 1, nil, 0, "DATATYPE_NULL", 0, 1, "COMM_WORLD", "STATUS_IGNORE")
	})
}

// TestMatchedProbe finds a message and receives it with its handle.
func TestMatchedProbe(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, atSent := ints(7, 8)
		got, atGot := ints(0, 0)
		request, message := newOut(), newOut()
		status := unsafe.Pointer(new([8]int32))
		count, atCount := ints(0)
		r.ok("Isend", atSent, 2, "INT", 0, 4, "COMM_WORLD", request.at())
		r.ok("Mprobe", 0, 4, "COMM_WORLD", message.at(), status)
		if r.ok("Get_count", status, "INT", atCount); count[0] != 2 ||
			*(*int32)(unsafe.Add(status, r.l.abi.status.tag)) != 4 {
			r.t.Errorf("found %v", *(*[8]int32)(status))
		}
		r.ok("Mrecv", atGot, 2, "INT", message.at(), "STATUS_IGNORE")
		if got[0] != 7 || got[1] != 8 || message.get(r) != handle(r.l.abi.null[kindMessage]) {
			r.t.Errorf("%v, %#x", got, message.get(r))
		}
		r.ok("Wait", request.at(), "STATUS_IGNORE")
	})
}

// TestPack packs elements into consecutive positions of a buffer, and unpacks them.
func TestPack(t *testing.T) {
	onRanks(t, 1, func(r *rank) {
		_, atIn := ints(7, 8)
		packed, atPacked := ints(0, 0, 0)
		got, atGot := ints(0, 0)
		position, atPosition := ints(4)
		size, atSize := ints(0)
		r.ok("Pack_size", 2, "INT", "COMM_WORLD", atSize)
		r.ok("Pack", atIn, 2, "INT", atPacked, 12, atPosition, "COMM_WORLD")
		if size[0] != 8 || position[0] != 12 || !slices.Equal(packed, []int32{0, 7, 8}) {
			r.t.Errorf("%d bytes, to %d, %v", size[0], position[0], packed)
		}
		position[0] = 4
		if r.ok("Unpack", atPacked, 12, atPosition, atGot, 2, "INT", "COMM_WORLD"); position[0] != 12 ||
			!slices.Equal(got, []int32{7, 8}) {
			r.t.Errorf("to %d, %v", position[0], got)
		}
	})
}

// TestCart uses a grid with one row, which is a ring.
func TestCart(t *testing.T) {
	onRanks(t, 3, func(r *rank) {
		me, atMe := ints(0)
		dims, atDims := ints(1, 3)
		periods, atPeriods := ints(0, 1)
		coords, atCoords := ints(9, 9)
		grid := newOut()
		r.ok("Cart_create", "COMM_WORLD", 2, atDims, atPeriods, 0, grid.at())
		r.ok("Comm_rank", grid.get(r), atMe)
		if r.ok("Cart_coords", grid.get(r), 2, 2, atCoords); !slices.Equal(coords, []int32{0, 2}) {
			r.t.Errorf("coordinates %v", coords)
		}
		source, atSource := ints(9)
		dest, atDest := ints(9)
		if r.ok("Cart_shift", grid.get(r), 1, 1, atSource, atDest); source[0] != (me[0]+2)%3 || dest[0] != (me[0]+1)%3 {
			r.t.Errorf("%d, from %d, to %d", me[0], source[0], dest[0])
		}
		dims[0], dims[1], periods[0], periods[1] = 9, 9, 9, 9
		r.ok("Cart_get", grid.get(r), 2, atDims, atPeriods, atCoords)
		if !slices.Equal(dims, []int32{1, 3}) || !slices.Equal(periods, []int32{0, 1}) ||
			!slices.Equal(coords, []int32{0, me[0]}) {
			r.t.Errorf("%v, %v, %v", dims, periods, coords)
		}
		r.ok("Comm_free", grid.at())
	})
}
