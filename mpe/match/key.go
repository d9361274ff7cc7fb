package match

import "math/bits"

// AnySource and AnyTag are the wildcards of receives and probes. The sources and tags of messages are never negative.
const AnySource, AnyTag int32 = -1, -1

// A key holds the source in its upper half and the tag in its lower half. A wildcard sets all bits of its half.
const (
	anySourceBits uint64 = 0xFFFFFFFF_00000000
	anyTagBits    uint64 = 0x00000000_FFFFFFFF
)

// class describes which parts of a key are wildcards.
type class uint8

const (
	exact    class = iota
	bySource       // (source, *)
	byTag          // (*, tag)
	byNone         // (*, *)
	numClasses
)

const classBits = 2 // size of a class

// masks[c], ORed to the key of a message, yields the key of class c that matches the message.
var masks = [numClasses]uint64{0, anyTagBits, anySourceBits, anySourceBits | anyTagBits}

func makeKey(source, tag int32) uint64 {
	return uint64(uint32(source))<<32 | uint64(uint32(tag))
}

func splitKey(key uint64) (source, tag int32) {
	return int32(key >> 32), int32(uint32(key))
}

// classOf returns the class of a key. Only wildcards set the sign bits of the two halves.
func classOf(key uint64) class {
	return class(uint32(key)>>31 | uint32(key>>63)<<1)
}

// hash folds two 128-bit products. A single product would not spread consecutive tags, and sources at any stride, well
// enough over both the low bits, which select a bucket, and the high bits, which form tags. The constants are digits of
// pi and of the golden ratio; the factors are odd.
func hash(key uint64) uint64 {
	hi, lo := bits.Mul64(key^0x243F6A8885A308D3, 0x9E3779B97F4A7C15)
	hi, lo = bits.Mul64(hi^lo, 0x13198A2E03707345)
	return hi ^ lo
}
