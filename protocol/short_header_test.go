package protocol_test

import (
	"encoding/hex"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestShortHeader checks that encoding is the inverse of decoding, for any 24 bytes.
func TestShortHeader(t *testing.T) {
	h := protocol.ShortHeader{
		SessionDigest: protocol.SessionDigest(0xa1b2c3d4, 0x0102030405060708), Number: 17, Acknowledged: 12, Message: 3,
		Comm: 7, Tag: protocol.MaxExtTag, Datatype: protocol.Float,
	}
	var b [protocol.ShortHeaderLen]byte
	h.Put(&b)
	if got, want := hex.EncodeToString(b[:]), "d0c0b0a0110000000c0000000300000007000000ffffffff"; got != want {
		t.Errorf("%s, not %s", got, want)
	}
	var got protocol.ShortHeader
	if got.Decode(&b); got != h {
		t.Errorf("%+v, not %+v", got, h)
	}
}

func FuzzShortHeader(f *testing.F) {
	f.Add(make([]byte, protocol.ShortHeaderLen))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < protocol.ShortHeaderLen {
			return
		}
		var h protocol.ShortHeader
		h.Decode((*[protocol.ShortHeaderLen]byte)(b))
		var again [protocol.ShortHeaderLen]byte
		if h.Put(&again); again != [protocol.ShortHeaderLen]byte(b) {
			t.Errorf("%x, not %x", again, b[:protocol.ShortHeaderLen])
		}
	})
}
