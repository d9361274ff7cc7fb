package cpumodel

import (
	"encoding/binary"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	headerLen = protocol.HeaderLen
	wordLen   = protocol.WordLen
	mark      = 0x96
)

// header holds the fields of a header that the library reads. The library accepts undefined types and calls.
type header struct {
	dst, src, size uint32
	call           protocol.Call
	typ            protocol.Type
}

// parse decodes the first 32 bytes of b as the library does: both marks must be present, and bytes 18 to 27 must be 0.
func parse(b []byte) (header, bool) {
	for i := range 4 {
		if b[i] != mark || b[28+i] != mark {
			return header{}, false
		}
	}
	for _, x := range b[18:28] {
		if x != 0 {
			return header{}, false
		}
	}
	return header{
		dst:  binary.LittleEndian.Uint32(b[4:]),
		src:  binary.LittleEndian.Uint32(b[8:]),
		size: binary.LittleEndian.Uint32(b[12:]),
		call: protocol.Call(b[16]),
		typ:  protocol.Type(b[17]),
	}, true
}

func (h header) bytes() []byte {
	b := make([]byte, headerLen)
	for i := range 4 {
		b[i], b[28+i] = mark, mark
	}
	binary.LittleEndian.PutUint32(b[4:], h.dst)
	binary.LittleEndian.PutUint32(b[8:], h.src)
	binary.LittleEndian.PutUint32(b[12:], h.size)
	b[16], b[17] = byte(h.call), byte(h.typ)
	return b
}

// deferredHeaders holds the newest unexpected header from each source rank.
type deferredHeaders struct {
	headers [maxRanks]header
	skip    [maxRanks]bool
	// num counts the calls of put minus the calls of drop. It therefore still includes headers that were overwritten.
	num int
}

// newDeferredHeaders returns a store without headers: a rank is skipped until put stores a header for it.
func newDeferredHeaders() deferredHeaders {
	var d deferredHeaders
	for i := range d.skip {
		d.skip[i] = true
	}
	return d
}

// put stores the header h under the source rank that it names, and reports whether the library supports that rank.
func (d *deferredHeaders) put(h header) bool {
	if h.src >= maxRanks {
		return false
	}
	d.headers[h.src] = h
	d.skip[h.src] = false
	d.num++
	return true
}

// get returns the header stored for a rank, if any. The header remains stored until drop is called.
func (d *deferredHeaders) get(rank int) (header, bool) {
	if d.num == 0 || d.skip[rank] {
		return header{}, false
	}
	return d.headers[rank], true
}

func (d *deferredHeaders) drop(rank int) {
	d.headers[rank] = header{}
	d.skip[rank] = true
	d.num--
}
