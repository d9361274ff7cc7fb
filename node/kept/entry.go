package kept

import (
	"encoding/binary"
	"hash/crc32"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

const (
	bootLen        = 16
	entryLen       = 96
	checksumOffset = entryLen - 4
)

// storedEntry is an entry of the file. Its Instants are readings of clock.
type storedEntry struct {
	boot [bootLen]byte
	handshake.SavedState
}

// The bits of an entry's flags.
const (
	flagReceived = 1 << iota
	flagDeadEnd
	flagSent
	flagRebooted
	flagsEnd
)

// encodeEntry writes an entry to all of the entryLen bytes of b.
func encodeEntry(b []byte, s *storedEntry) {
	le := binary.LittleEndian
	_ = b[entryLen-1]
	copy(b, s.boot[:])
	b[16], b[17], b[18], b[19] = byte(s.In.Progress), byte(s.In.Call), s.In.Tag, 0
	b[20], b[21], b[22], b[23] = byte(s.Out.Progress), byte(s.Out.Call), s.Out.Tag, 0
	flags := byte(0)
	if s.HasReceived {
		flags |= flagReceived
	}
	if s.DeadEnd {
		flags |= flagDeadEnd
	}
	if s.DeadOnSend {
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
	le.PutUint64(b[48:], uint64(s.In.StepTime))
	le.PutUint64(b[56:], uint64(s.Out.StepTime))
	le.PutUint64(b[64:], uint64(s.Acked))
	clear(b[72:checksumOffset])
	le.PutUint32(b[checksumOffset:], crc32.Checksum(b[:checksumOffset], castagnoli))
}

// decodeEntry reads an entry. The error is ErrCorrupt unless a process has written the entry.
func decodeEntry(b []byte) (storedEntry, error) {
	le := binary.LittleEndian
	var s storedEntry
	copy(s.boot[:], b)
	s.In = handshake.SavedMessage{
		Progress: handshake.Progress(b[16]), Call: protocol.Call(b[17]), Tag: b[18], Words: le.Uint32(b[28:]),
		StepTime: handshake.Instant(le.Uint64(b[48:])),
	}
	s.Out = handshake.SavedMessage{
		Progress: handshake.Progress(b[20]), Call: protocol.Call(b[21]), Tag: b[22], Words: le.Uint32(b[32:]),
		StepTime: handshake.Instant(le.Uint64(b[56:])),
	}
	flags := b[24]
	s.HasReceived, s.DeadEnd, s.DeadOnSend, s.Rebooted = flags&flagReceived != 0, flags&flagDeadEnd != 0, flags&flagSent != 0,
		flags&flagRebooted != 0
	s.Call, s.Size, s.Sum, s.DeadWords = protocol.Call(b[25]), le.Uint32(b[36:]), le.Uint32(b[40:]), le.Uint32(b[44:])
	s.Acked = handshake.Instant(le.Uint64(b[64:]))
	valid := le.Uint32(b[checksumOffset:]) == crc32.Checksum(b[:checksumOffset], castagnoli) && flags < flagsEnd &&
		s.In.Progress <= handshake.Acknowledged && s.Out.Progress <= handshake.Cleared &&
		s.In.Call.IsSend() && s.Out.Call.IsSend() && s.Call.IsSend()
	if !valid {
		return storedEntry{}, ErrCorrupt
	}
	return s, nil
}
