//go:build !amd64

package protocol

// extHeaderSum returns the CRC-32C of a header. The checksum field itself counts as 0.
func extHeaderSum(header *[ExtHeaderLen]byte) uint32 { return extHeaderSumGeneric(header) }
