package wire

import (
	"bytes"
	"testing"
)

// FuzzHello reads the first frame of a program, or data of another protocol.
func FuzzHello(f *testing.F) {
	f.Add(HelloFrame(Hello{Version: Version, Rank: AnyRank}))
	f.Add([]byte("GET / HTTP/1.1\r\n\r\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := NewReader(bytes.NewReader(b)).ReadHello()
		if err == nil && !bytes.HasPrefix(b[FrameHeaderLen:], []byte(magic)) {
			t.Errorf("%x is %+v", b, h)
		}
	})
}
