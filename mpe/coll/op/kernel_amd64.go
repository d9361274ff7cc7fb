package op

import "golang.org/x/sys/cpu"

// supportedKernels returns the tables of kernels that the processor supports, the fastest first.
func supportedKernels() []*kernelTable {
	switch x86 := cpu.X86; {
	case x86.HasAVX2 && x86.HasAVX512VL && x86.HasAVX512DQ:
		return []*kernelTable{&avx512Kernels, &avx2Kernels}
	case x86.HasAVX2:
		return []*kernelTable{&avx2Kernels}
	}
	return nil
}

// avx512Kernels has the operations for which AVX2 has no instruction.
var avx512Kernels = kernelTable{
	Prod: {Int64: prodInt64VL, Uint64: prodInt64VL},
	Max:  {Int64: maxInt64VL, Uint64: maxUint64VL},
	Min:  {Int64: minInt64VL, Uint64: minUint64VL},
}

var avx2Kernels = kernelTable{
	Sum: {
		Int8: sumInt8, Int16: sumInt16, Int32: sumInt32, Int64: sumInt64,
		Uint8: sumInt8, Uint16: sumInt16, Uint32: sumInt32, Uint64: sumInt64,
		Float32: sumFloat32, Float64: sumFloat64, Complex64: sumFloat32, Complex128: sumFloat64,
	},
	Prod: {
		Int8: prodInt8, Int16: prodInt16, Int32: prodInt32, Int64: prodInt64,
		Uint8: prodInt8, Uint16: prodInt16, Uint32: prodInt32, Uint64: prodInt64,
		Float32: prodFloat32, Float64: prodFloat64,
	},
	Max: {
		Int8: maxInt8, Int16: maxInt16, Int32: maxInt32, Int64: maxInt64,
		Uint8: maxUint8, Uint16: maxUint16, Uint32: maxUint32, Uint64: maxUint64,
		Float32: maxFloat32, Float64: maxFloat64,
	},
	Min: {
		Int8: minInt8, Int16: minInt16, Int32: minInt32, Int64: minInt64,
		Uint8: minUint8, Uint16: minUint16, Uint32: minUint32, Uint64: minUint64,
		Float32: minFloat32, Float64: minFloat64,
	},
	LAnd: {
		Int8: landInt8, Int16: landInt16, Int32: landInt32, Int64: landInt64,
		Uint8: landInt8, Uint16: landInt16, Uint32: landInt32, Uint64: landInt64,
	},
	LOr: {
		Int8: lorInt8, Int16: lorInt16, Int32: lorInt32, Int64: lorInt64,
		Uint8: lorInt8, Uint16: lorInt16, Uint32: lorInt32, Uint64: lorInt64,
	},
	LXor: {
		Int8: lxorInt8, Int16: lxorInt16, Int32: lxorInt32, Int64: lxorInt64,
		Uint8: lxorInt8, Uint16: lxorInt16, Uint32: lxorInt32, Uint64: lxorInt64,
	},
	BAnd: {
		Int8: band, Int16: band, Int32: band, Int64: band,
		Uint8: band, Uint16: band, Uint32: band, Uint64: band,
	},
	BOr: {
		Int8: bor, Int16: bor, Int32: bor, Int64: bor,
		Uint8: bor, Uint16: bor, Uint32: bor, Uint64: bor,
	},
	BXor: {
		Int8: bxor, Int16: bxor, Int32: bxor, Int64: bxor,
		Uint8: bxor, Uint16: bxor, Uint32: bxor, Uint64: bxor,
	},
}

// The following functions are implemented in kernel_amd64.s. Functions for Int also apply to unsigned integers, except
// max and min.

func sumInt8(result, left, right *byte, n int)
func sumInt16(result, left, right *byte, n int)
func sumInt32(result, left, right *byte, n int)
func sumInt64(result, left, right *byte, n int)
func sumFloat32(result, left, right *byte, n int)
func sumFloat64(result, left, right *byte, n int)
func prodInt8(result, left, right *byte, n int)
func prodInt16(result, left, right *byte, n int)
func prodInt32(result, left, right *byte, n int)
func prodInt64(result, left, right *byte, n int)
func prodFloat32(result, left, right *byte, n int)
func prodFloat64(result, left, right *byte, n int)
func maxInt8(result, left, right *byte, n int)
func maxInt16(result, left, right *byte, n int)
func maxInt32(result, left, right *byte, n int)
func maxInt64(result, left, right *byte, n int)
func maxUint8(result, left, right *byte, n int)
func maxUint16(result, left, right *byte, n int)
func maxUint32(result, left, right *byte, n int)
func maxUint64(result, left, right *byte, n int)
func maxFloat32(result, left, right *byte, n int)
func maxFloat64(result, left, right *byte, n int)
func minInt8(result, left, right *byte, n int)
func minInt16(result, left, right *byte, n int)
func minInt32(result, left, right *byte, n int)
func minInt64(result, left, right *byte, n int)
func minUint8(result, left, right *byte, n int)
func minUint16(result, left, right *byte, n int)
func minUint32(result, left, right *byte, n int)
func minUint64(result, left, right *byte, n int)
func minFloat32(result, left, right *byte, n int)
func minFloat64(result, left, right *byte, n int)
func landInt8(result, left, right *byte, n int)
func landInt16(result, left, right *byte, n int)
func landInt32(result, left, right *byte, n int)
func landInt64(result, left, right *byte, n int)
func lorInt8(result, left, right *byte, n int)
func lorInt16(result, left, right *byte, n int)
func lorInt32(result, left, right *byte, n int)
func lorInt64(result, left, right *byte, n int)
func lxorInt8(result, left, right *byte, n int)
func lxorInt16(result, left, right *byte, n int)
func lxorInt32(result, left, right *byte, n int)
func lxorInt64(result, left, right *byte, n int)
func band(result, left, right *byte, n int)
func bor(result, left, right *byte, n int)
func bxor(result, left, right *byte, n int)
func prodInt64VL(result, left, right *byte, n int)
func maxInt64VL(result, left, right *byte, n int)
func maxUint64VL(result, left, right *byte, n int)
func minInt64VL(result, left, right *byte, n int)
func minUint64VL(result, left, right *byte, n int)

// triadFloat64 is result = left + 3·right, for benchmarks.
func triadFloat64(result, left, right *byte, n int)
