package protocol

import "golang.org/x/sys/cpu"

// hasCRC32 is set if the processor has the CRC32 instruction, as all processors since 2011 do.
var hasCRC32 = cpu.X86.HasSSE42

// extHeaderSum returns the CRC-32C of a header as if its checksum field were 0. For so few bytes, package hash/crc32
// takes ten times as long, mostly for its setup.
func extHeaderSum(header *[ExtHeaderLen]byte) uint32 {
	if !hasCRC32 {
		return extHeaderSumGeneric(header)
	}
	return extHeaderSumSSE42(header)
}

// extHeaderSumSSE42 is implemented in ext_checksum_amd64.s.
//
//go:noescape
func extHeaderSumSSE42(header *[ExtHeaderLen]byte) uint32
