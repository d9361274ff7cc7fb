//go:build !amd64

package protocol

// extHeaderSum is the CRC-32C of a header, the checksum as 0.
func extHeaderSum(header *[ExtHeaderLen]byte) uint32 { return extHeaderSumGeneric(header) }
