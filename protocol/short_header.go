package protocol

import "encoding/binary"

// ShortHeaderLen is the length, in bytes, of a short header, which ranks that share memory use.
const ShortHeaderLen = 24

// ShortHeader replaces the header of a packet between ranks that share memory, if the packet is the first transmission
// of a whole eager message (E52). Its SessionDigest field combines the sessions of the packet.
type ShortHeader struct {
	SessionDigest        uint32
	Number, Acknowledged uint32
	Message, Comm, Tag   uint32
	Datatype             Datatype
}

// SessionDigest combines the sessions of the two ranks, the sender of a packet and its receiver, into 32 bits.
func SessionDigest(source, destination Session) uint32 {
	return uint32(source) ^ uint32(destination>>32)
}

// Put encodes h into b.
func (h *ShortHeader) Put(b *[ShortHeaderLen]byte) {
	putUint32Pair(b[0:], h.SessionDigest, h.Number)
	putUint32Pair(b[8:], h.Acknowledged, h.Message)
	putUint32Pair(b[16:], h.Comm, h.Tag|uint32(h.Datatype&1)<<31)
}

// Decode decodes a header. It cannot fail, because the header alone does not show whether it is valid.
func (h *ShortHeader) Decode(b *[ShortHeaderLen]byte) {
	h.SessionDigest = binary.LittleEndian.Uint32(b[0:])
	h.Number = binary.LittleEndian.Uint32(b[4:])
	h.Acknowledged = binary.LittleEndian.Uint32(b[8:])
	h.Message = binary.LittleEndian.Uint32(b[12:])
	h.Comm = binary.LittleEndian.Uint32(b[16:])
	tag := binary.LittleEndian.Uint32(b[20:])
	h.Tag, h.Datatype = tag&MaxExtTag, Datatype(tag>>31)
}
