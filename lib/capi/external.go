package capi

import (
	"encoding/binary"
	"math"
	"math/bits"
	"runtime"
	"slices"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/mpi"
	"github.com/zrlmpi/zrlmpid/mpi/datatype"
)

// The standard's format external32 (section 14.5.2) stores numbers with the most significant byte first. For
// some types, their size differs from the size on this machine.

// number describes how a number of a basic datatype is stored: its size in memory and in external32, and the conversion
// between the two.
type number struct {
	native, external int
	form             numberForm
}

// numberForm selects the conversion of a number.
type numberForm uint8

const (
	sameForm     numberForm = iota
	signedForm              // an integer
	unsignedForm            // an unsigned integer
	extendedForm            // a floating-point number: 80 bits in memory, 128 bits in external32
)

// longDouble returns the description of a C long double.
func longDouble() number {
	if runtime.GOARCH == "amd64" || runtime.GOARCH == "386" {
		return number{16, 16, extendedForm}
	}
	return number{16, 16, sameForm}
}

// numbersOf returns the numbers in an element of a basic datatype.
func numbersOf(name string, size int) []number {
	long, index := number{8, 4, signedForm}, number{4, 4, sameForm}
	halves := []number{{size / 2, size / 2, sameForm}, {size / 2, size / 2, sameForm}}
	switch name {
	case "LONG":
		return []number{long}
	case "UNSIGNED_LONG":
		return []number{{8, 4, unsignedForm}}
	case "WCHAR":
		return []number{{4, 2, unsignedForm}}
	case "LONG_DOUBLE":
		return []number{longDouble()}
	case "C_LONG_DOUBLE_COMPLEX", "CXX_LONG_DOUBLE_COMPLEX":
		return []number{longDouble(), longDouble()}
	case "LONG_INT":
		return []number{long, index}
	case "LONG_DOUBLE_INT":
		return []number{longDouble(), index}
	case "FLOAT_INT", "DOUBLE_INT", "SHORT_INT":
		return []number{{size - 4, size - 4, sameForm}, index}
	case "2INT", "2INTEGER", "2REAL", "2DOUBLE_PRECISION", "COMPLEX4", "C_COMPLEX", "C_FLOAT_COMPLEX",
		"CXX_FLOAT_COMPLEX", "COMPLEX", "COMPLEX8",
		"C_DOUBLE_COMPLEX", "CXX_DOUBLE_COMPLEX", "DOUBLE_COMPLEX", "COMPLEX16", "COMPLEX32":
		return halves
	case "LB", "UB":
		return nil
	}
	return []number{{size, size, sameForm}}
}

// numbersIn returns the numbers in an element of one of the ABI's basic datatypes.
func (l *Library) numbersIn(t *datatype.Type) []number {
	name := ""
	if d := l.types.get(l.typeHandles[t]); d != nil {
		name = d.predefined
	}
	return numbersOf(name, int(t.Size()))
}

// forEachPart calls each for every datatype that an element of t contains, with the number of elements.
func forEachPart(t *datatype.Type, each func(of *datatype.Type, n int64)) {
	made := t.Contents()
	if made.Combiner != datatype.CombinerStruct {
		if of := made.Types[0]; of.Size() > 0 {
			each(of, t.Size()/of.Size())
		}
		return
	}
	for i, of := range made.Types {
		each(of, made.Integers[1+i])
	}
}

// externalSize returns the size of an element in external32. It is at most the size in memory.
func (l *Library) externalSize(t *datatype.Type) (bytes int64) {
	if t.Contents().Combiner == datatype.Named {
		for _, n := range l.numbersIn(t) {
			bytes += int64(n.external)
		}
		return bytes
	}
	forEachPart(t, func(of *datatype.Type, n int64) { bytes += n * l.externalSize(of) })
	return bytes
}

// converter converts elements between packed native form and external32.
type converter struct {
	lib              *Library
	native, external []byte
	pack             bool
	err              error
}

// convertElements converts n elements. Derived datatypes are converted part by part, because sizes may differ between
// memory and external32.
func (c *converter) convertElements(t *datatype.Type, n int64) {
	if t.Size() == 0 {
		return
	}
	if t.Contents().Combiner == datatype.Named {
		numbers := c.lib.numbersIn(t)
		for ; n > 0; n-- {
			for i := range numbers {
				c.convertNumber(&numbers[i])
			}
		}
		return
	}
	for ; n > 0 && c.err == nil; n-- {
		forEachPart(t, c.convertElements)
	}
}

// convertNumber converts the next number, and advances in both forms. The first error, a number too large for
// external32, stays in err.
func (c *converter) convertNumber(n *number) {
	from, to := c.native[:n.native], c.external[:n.external]
	if !c.pack {
		from, to = to, from
	}
	c.native, c.external = c.native[n.native:], c.external[n.external:]
	switch {
	case n.form == sameForm:
		copy(to, from)
		slices.Reverse(to)
	case n.form == extendedForm && c.pack:
		toQuad(to, from)
	case n.form == extendedForm:
		toExtended(to, from)
	case !c.pack:
		widen(to, from, n.form == signedForm)
	case !narrow(to, from, n.form == signedForm) && c.err == nil:
		c.err = errorf(errConversion, "the number of bytes % x, least significant first, does not fit into the %d "+
			"bytes of external32", from, n.external)
	}
}

// widen converts an integer from external32 to a longer native integer.
func widen(to, from []byte, signed bool) {
	fill := byte(0)
	if signed && from[0]&0x80 != 0 {
		fill = 0xff
	}
	for i := range to {
		to[i] = fill
	}
	for i, b := range from {
		to[len(from)-1-i] = b
	}
}

// narrow is the inverse of widen. It reports whether the number fits.
func narrow(to, from []byte, signed bool) bool {
	n := len(to)
	for i := range to {
		to[i] = from[n-1-i]
	}
	fill := byte(0)
	if signed && to[0]&0x80 != 0 {
		fill = 0xff
	}
	for _, b := range from[n:] {
		if b != fill {
			return false
		}
	}
	return true
}

// toQuad converts an 80-bit number to 128 bits. Both formats have 15-bit exponents, but only the 80-bit format
// stores the first bit of the significand.
func toQuad(to, from []byte) {
	significand, exponent := binary.LittleEndian.Uint64(from), binary.LittleEndian.Uint16(from[8:])
	if exponent&math.MaxInt16 == 0 && significand>>63 != 0 {
		exponent++ // a number that is denormal here is normal there
	}
	binary.BigEndian.PutUint16(to, exponent)
	fraction := significand << 1
	binary.BigEndian.PutUint64(to[2:], fraction)
	clear(to[10:])
}

// toExtended is the inverse of toQuad. It rounds to nearest, ties to even.
func toExtended(to, from []byte) {
	exponent := binary.BigEndian.Uint16(from)
	high := binary.BigEndian.Uint64(from[2:])
	// the last 48 of 112 bits
	rest := uint64(binary.BigEndian.Uint32(from[10:]))<<16 | uint64(binary.BigEndian.Uint16(from[14:]))
	significand, lost := high>>1, high&1<<48|rest
	switch e := exponent & math.MaxInt16; {
	case e == math.MaxInt16: // infinity or NaN
		significand |= 1 << 63
		if lost != 0 {
			significand |= 1
		}
		lost = 0
	case e != 0:
		significand |= 1 << 63
	}
	if lost > 1<<48 || lost == 1<<48 && significand&1 != 0 {
		var carry uint64
		if significand, carry = bits.Add64(significand, 1, 0); carry != 0 {
			significand, exponent = 1<<63, exponent+1
		} else if exponent&math.MaxInt16 == 0 && significand>>63 != 0 {
			exponent++
		}
	}
	binary.LittleEndian.PutUint64(to, significand)
	binary.LittleEndian.PutUint16(to[8:], exponent)
	clear(to[10:])
}

// packExternal implements MPI_Pack_external(datarep, inbuf, incount, datatype, outbuf, outsize, position).
func (a *args) packExternal() { a.copyExternal(1, 2, 3, 4, 5, 6, true) }

// unpackExternal implements MPI_Unpack_external(datarep, inbuf, insize, position, outbuf, outcount, datatype).
func (a *args) unpackExternal() { a.copyExternal(4, 5, 6, 1, 2, 3, false) }

// packExternalSize implements MPI_Pack_external_size(datarep, incount, datatype, size).
func (a *args) packExternalSize() {
	a.checkDatarep()
	b, t := a.elementsArg(1, 1, 2, -1)
	a.setWord(3, b.count*a.lib.externalSize(t.Type))
}

func (a *args) checkDatarep() {
	if name := a.cString(0); name != "external32" {
		panic(failf(mpi.ErrArg, "the format %q is not supported: use external32", name))
	}
}

// copyExternal copies between elements and a buffer of size bytes, and advances the position in that buffer.
func (a *args) copyExternal(buf, count, of, to, size, position int, pack bool) {
	a.checkDatarep()
	a.largeCounts = true // positions have 64 bits in all of these calls
	b, t := a.elementsArg(buf, count, of, -1)
	at := a.position(position)
	n, room := b.count*a.lib.externalSize(t.Type), a.count(size)
	if at < 0 || room-at < n {
		panic(failf(mpi.ErrTruncate,
			"%d elements have %d bytes in external32, but the buffer has %d of %d from position %d on",
			b.count, n, max(room-at, 0), room, at))
	}
	if n == 0 {
		return
	}
	p := a.checkedPointer(to)
	native := make([]byte, b.count*t.Size())
	c := converter{lib: a.lib, native: native, external: unsafe.Slice((*byte)(unsafe.Add(p, at)), n), pack: pack}
	if pack {
		t.Pack(native, b.at, b.count, 0)
	}
	if c.convertElements(t.Type, b.count); c.err != nil {
		check(c.err)
		return
	}
	if !pack {
		t.Unpack(b.at, b.count, native, 0)
	}
	a.setPosition(position, at+n)
}
