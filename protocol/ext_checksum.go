package protocol

import (
	"encoding/binary"
	"hash/crc32"
)

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	noChecksum [4]byte
)

// extChecksum returns the checksum of a packet, computed as if the checksum field were 0. It does not modify the
// packet, which may be part of the caller's recording. With FlagPlain, the checksum does not cover the payload (E43).
func extChecksum(header *[ExtHeaderLen]byte, payload []byte) uint32 {
	sum := extHeaderSum(header)
	if len(payload) == 0 || header[offFlags]&byte(FlagPlain) != 0 {
		return sum
	}
	return crc32.Update(sum, castagnoli, payload)
}

// extHeaderSumGeneric returns the CRC-32C of a header. The checksum field itself counts as 0.
func extHeaderSumGeneric(header *[ExtHeaderLen]byte) uint32 {
	sum := crc32.Update(0, castagnoli, header[:offChecksum])
	sum = crc32.Update(sum, castagnoli, noChecksum[:])
	return crc32.Update(sum, castagnoli, header[offEnd:])
}

// putExtChecksum computes the checksum of a packet and writes it into the header. The payload is the concatenation of
// the given parts.
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
