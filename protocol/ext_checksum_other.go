//go:build !amd64

package protocol

// extHeaderSum returns the CRC-32C of a header as if its checksum field were 0.
func extHeaderSum(header *[ExtHeaderLen]byte) uint32 { return extHeaderSumGeneric(header) }
