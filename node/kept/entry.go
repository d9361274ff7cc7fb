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

// storedEntry is an entry as stored in the file. Its Instants are times on clock, which all processes share.
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
func encodeEntry(b []byte, entry *storedEntry) {
	le := binary.LittleEndian
	_ = b[entryLen-1]
	copy(b, entry.boot[:])
	b[16], b[17], b[18], b[19] = byte(entry.In.Progress), byte(entry.In.Call), entry.In.Tag, 0
	b[20], b[21], b[22], b[23] = byte(entry.Out.Progress), byte(entry.Out.Call), entry.Out.Tag, 0
	flags := byte(0)
	if entry.HasReceived {
		flags |= flagReceived
	}
	if entry.DeadEnd {
		flags |= flagDeadEnd
	}
	if entry.DeadOnSend {
		flags |= flagSent
	}
	if entry.Rebooted {
		flags |= flagRebooted
	}
	b[24], b[25], b[26], b[27] = flags, byte(entry.Call), 0, 0
	le.PutUint32(b[28:], entry.In.Words)
	le.PutUint32(b[32:], entry.Out.Words)
	le.PutUint32(b[36:], entry.Size)
	le.PutUint32(b[40:], entry.Sum)
	le.PutUint32(b[44:], entry.DeadWords)
	le.PutUint64(b[48:], uint64(entry.In.StepTime))
	le.PutUint64(b[56:], uint64(entry.Out.StepTime))
	le.PutUint64(b[64:], uint64(entry.Acked))
	clear(b[72:checksumOffset])
	le.PutUint32(b[checksumOffset:], crc32.Checksum(b[:checksumOffset], castagnoli))
}

// decodeEntry reads an entry. The error is ErrCorrupt if b is not an entry written by encodeEntry.
func decodeEntry(b []byte) (storedEntry, error) {
	le := binary.LittleEndian
	var entry storedEntry
	copy(entry.boot[:], b)
	entry.In = handshake.SavedMessage{
		Progress: handshake.Progress(b[16]), Call: protocol.Call(b[17]), Tag: b[18], Words: le.Uint32(b[28:]),
		StepTime: handshake.Instant(le.Uint64(b[48:])),
	}
	entry.Out = handshake.SavedMessage{
		Progress: handshake.Progress(b[20]), Call: protocol.Call(b[21]), Tag: b[22], Words: le.Uint32(b[32:]),
		StepTime: handshake.Instant(le.Uint64(b[56:])),
	}
	flags := b[24]
	entry.HasReceived, entry.DeadEnd, entry.DeadOnSend, entry.Rebooted = flags&flagReceived != 0, flags&flagDeadEnd != 0,
		flags&flagSent != 0,
		flags&flagRebooted != 0
	entry.Call, entry.Size, entry.Sum, entry.DeadWords = protocol.Call(b[25]), le.Uint32(b[36:]), le.Uint32(b[40:]),
		le.Uint32(b[44:])
	entry.Acked = handshake.Instant(le.Uint64(b[64:]))
	valid := le.Uint32(b[checksumOffset:]) == crc32.Checksum(b[:checksumOffset], castagnoli) && flags < flagsEnd &&
		entry.In.Progress <= handshake.Acknowledged && entry.Out.Progress <= handshake.Cleared &&
		entry.In.Call.IsSend() && entry.Out.Call.IsSend() && entry.Call.IsSend()
	if !valid {
		return storedEntry{}, ErrCorrupt
	}
	return entry, nil
}
