package kept

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	bootLen  = 16
	entryLen = 96
	sumAt    = entryLen - 4
)

// stored is an entry of the file. Its Instants are readings of clock.
type stored struct {
	boot [bootLen]byte
	handshake.Kept
}

// The bits of an entry's flags.
const (
	flagReceived = 1 << iota
	flagDeadEnd
	flagSent
	flagRebooted
	flagsEnd
)

// encode writes an entry to all of the entryLen bytes of b.
func encode(b []byte, s *stored) {
	le := binary.LittleEndian
	_ = b[entryLen-1]
	copy(b, s.boot[:])
	b[16], b[17], b[18], b[19] = byte(s.In.Progress), byte(s.In.Call), s.In.Tag, 0
	b[20], b[21], b[22], b[23] = byte(s.Out.Progress), byte(s.Out.Call), s.Out.Tag, 0
	flags := byte(0)
	if s.Received {
		flags |= flagReceived
	}
	if s.DeadEnd {
		flags |= flagDeadEnd
	}
	if s.Sent {
		flags |= flagSent
	}
	if s.Rebooted {
		flags |= flagRebooted
	}
	b[24], b[25], b[26], b[27] = flags, byte(s.Call), 0, 0
	le.PutUint32(b[28:], s.In.Words)
	le.PutUint32(b[32:], s.Out.Words)
	le.PutUint32(b[36:], s.Size)
	le.PutUint32(b[40:], s.Sum)
	le.PutUint32(b[44:], s.DeadWords)
	le.PutUint64(b[48:], uint64(s.In.At))
	le.PutUint64(b[56:], uint64(s.Out.At))
	le.PutUint64(b[64:], uint64(s.Acked))
	clear(b[72:sumAt])
	le.PutUint32(b[sumAt:], crc32.Checksum(b[:sumAt], castagnoli))
}

// decode reads an entry. The error is ErrCorrupt unless a process has written the entry.
func decode(b []byte) (stored, error) {
	le := binary.LittleEndian
	var s stored
	copy(s.boot[:], b)
	s.In = handshake.KeptMessage{
		Progress: handshake.Progress(b[16]), Call: protocol.Call(b[17]), Tag: b[18], Words: le.Uint32(b[28:]),
		At: handshake.Instant(le.Uint64(b[48:])),
	}
	s.Out = handshake.KeptMessage{
		Progress: handshake.Progress(b[20]), Call: protocol.Call(b[21]), Tag: b[22], Words: le.Uint32(b[32:]),
		At: handshake.Instant(le.Uint64(b[56:])),
	}
	flags := b[24]
	s.Received, s.DeadEnd, s.Sent, s.Rebooted = flags&flagReceived != 0, flags&flagDeadEnd != 0, flags&flagSent != 0,
		flags&flagRebooted != 0
	s.Call, s.Size, s.Sum, s.DeadWords = protocol.Call(b[25]), le.Uint32(b[36:]), le.Uint32(b[40:]), le.Uint32(b[44:])
	s.Acked = handshake.Instant(le.Uint64(b[64:]))
	valid := le.Uint32(b[sumAt:]) == crc32.Checksum(b[:sumAt], castagnoli) && flags < flagsEnd &&
		s.In.Progress <= handshake.Acknowledged && s.Out.Progress <= handshake.Cleared &&
		s.In.Call.IsSend() && s.Out.Call.IsSend() && s.Call.IsSend()
	if !valid {
		return stored{}, ErrCorrupt
	}
	return s, nil
}
