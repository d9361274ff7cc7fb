package protocol

import (
	"encoding/binary"
	"hash/crc32"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	noChecksum [4]byte
)

// extChecksum computes a packet's checksum with the field itself as 0. The
// packet is not changed: it may be the caller's recording. With FlagPlain the
// payload does not count (E43).
func extChecksum(header *[ExtHeaderLen]byte, payload []byte) uint32 {
	sum := extHeaderSum(header)
	if len(payload) == 0 || header[offFlags]&byte(FlagPlain) != 0 {
		return sum
	}
	return crc32.Update(sum, castagnoli, payload)
}

// extHeaderSumGeneric is the CRC-32C of a header, the checksum as 0.
func extHeaderSumGeneric(header *[ExtHeaderLen]byte) uint32 {
	sum := crc32.Update(0, castagnoli, header[:offChecksum])
	sum = crc32.Update(sum, castagnoli, noChecksum[:])
	return crc32.Update(sum, castagnoli, header[offEnd:])
}

// putExtChecksum completes the header of a packet that is in parts.
func putExtChecksum(header *[ExtHeaderLen]byte, payload [][]byte) {
	sum := extHeaderSum(header)
	if header[offFlags]&byte(FlagPlain) == 0 {
		for _, part := range payload {
			if len(part) > 0 {
				sum = crc32.Update(sum, castagnoli, part)
			}
		}
	}
	binary.LittleEndian.PutUint32(header[offChecksum:], sum)
}
