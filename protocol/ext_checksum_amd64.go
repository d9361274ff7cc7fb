package protocol

import "golang.org/x/sys/cpu"

// hasCRC32: the processor has the instruction, as all since 2011 have.
var hasCRC32 = cpu.X86.HasSSE42

// extHeaderSum is the CRC-32C of a header, the checksum as 0. Package hash/crc32
// needs ten times as long for so few bytes, most of it to get ready.
func extHeaderSum(header *[ExtHeaderLen]byte) uint32 {
	if !hasCRC32 {
		return extHeaderSumGeneric(header)
	}
	return extHeaderSumSSE42(header)
}

// extHeaderSumSSE42 is in ext_checksum_amd64.s.
//
//go:noescape
func extHeaderSumSSE42(header *[ExtHeaderLen]byte) uint32
