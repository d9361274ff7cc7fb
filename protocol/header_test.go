package protocol_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Examples of docs/ZRLMPI_protocol.md.
var examples = []struct {
	bytes string
	h     protocol.Header
	text  string
}{
	{
		"96969696 01000000 00000000 00000000 00 01 00 000000000000000000 96969696",
		protocol.Header{Dst: 1, Src: 0, Call: protocol.SendInt, Type: protocol.SendRequest},
		"SEND_REQUEST 0→1 SEND_INT",
	},
	{
		"96969696 00000000 01000000 5b010000 00 03 00 000000000000000000 96969696",
		protocol.Header{Dst: 0, Src: 1, Size: 347, Call: protocol.SendInt, Type: protocol.Data},
		"DATA 1→0 SEND_INT size=347",
	},
	{
		"96969696 02000000 3f000000 00000000 03 04 00 000000000000000000 96969696",
		protocol.Header{Dst: 2, Src: 63, Call: protocol.RecvFloat, Type: protocol.Ack},
		"ACK 63→2 RECV_FLOAT",
	},
}

func TestExamples(t *testing.T) {
	for _, ex := range examples {
		b := unhex(t, ex.bytes)
		h, err := protocol.CloudFPGA.Decode(b)
		if err != nil || h != ex.h {
			t.Errorf("%s decodes to %+v, %v", ex.bytes, h, err)
		}
		if got := protocol.CloudFPGA.Append(nil, ex.h); !bytes.Equal(got, b) {
			t.Errorf("%v encodes to %x", ex.h, got)
		}
		if ex.h.String() != ex.text {
			t.Errorf("%v prints as %q, want %q", ex.h, ex.h.String(), ex.text)
		}
	}
}

func TestDefectsNameTheByte(t *testing.T) {
	good := unhex(t, examples[0].bytes)
	for _, c := range []struct {
		at      int
		to      byte
		kind    protocol.DefectKind
		profile protocol.Profile
		text    string
	}{
		{0, 0, protocol.DefectStartMark, 0, "zrlmpi header: byte 0 is 0x00, but the start mark is 0x96"},
		{3, 0x97, protocol.DefectStartMark, 0, "zrlmpi header: byte 3 is 0x97, but the start mark is 0x96"},
		{28, 1, protocol.DefectEndMark, 0, "zrlmpi header: byte 28 is 0x01, but the end mark is 0x96"},
		{31, 1, protocol.DefectEndMark, 0, "zrlmpi header: byte 31 is 0x01, but the end mark is 0x96"},
		{18, 5, protocol.DefectReserved, 0, "zrlmpi header: byte 18 is 0x05, but must be 0"},
		{18, 5, protocol.DefectNone, protocol.V09, ""},
		{19, 1, protocol.DefectReserved, 0, "zrlmpi header: byte 19 is 0x01, but must be 0"},
		{19, 1, protocol.DefectReserved, protocol.V09, "zrlmpi header: byte 19 is 0x01, but must be 0"},
		{20, 1, protocol.DefectReserved, 0, "zrlmpi header: byte 20 is 0x01, but must be 0"},
		{27, 0xff, protocol.DefectReserved, protocol.V09, "zrlmpi header: byte 27 is 0xff, but must be 0"},
		{16, 5, protocol.DefectCall, 0, "zrlmpi header: byte 16 is 0x05, but the calls are 0 to 4"},
		{17, 0, protocol.DefectType, 0, "zrlmpi header: byte 17 is 0x00, but the packet types are 1 to 5"},
		{17, 6, protocol.DefectType, 0, "zrlmpi header: byte 17 is 0x06, but the packet types are 1 to 5"},
	} {
		b := bytes.Clone(good)
		b[c.at] = c.to
		h, err := c.profile.Decode(b)
		if c.kind == protocol.DefectNone {
			if err != nil || h.Tag != c.to {
				t.Errorf("byte %d = %#x in %v: %+v, %v", c.at, c.to, c.profile, h, err)
			}
			continue
		}
		var he *protocol.HeaderError
		if !errors.As(err, &he) || he.Kind != c.kind || int(he.Offset) != c.at || he.Got != c.to {
			t.Errorf("byte %d = %#x in %v: %v", c.at, c.to, c.profile, err)
		} else if err.Error() != c.text {
			t.Errorf("says %q, want %q", err, c.text)
		}
		if !errors.Is(err, &protocol.HeaderError{Defect: protocol.Defect{Kind: c.kind}}) {
			t.Errorf("%v is not its own kind", err)
		}
	}
	for n := range protocol.HeaderLen {
		_, err := protocol.CloudFPGA.Decode(good[:n])
		var he *protocol.HeaderError
		if !errors.As(err, &he) || he.Kind != protocol.DefectShort || int(he.Offset) != n {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestCalls(t *testing.T) {
	for c := protocol.SendInt; c <= protocol.Barrier; c++ {
		if c.Counterpart().Counterpart() != c {
			t.Errorf("%v is not its counterpart's counterpart", c)
		}
		if c != protocol.Barrier && (c.IsSend() == c.IsRecv() || c.Counterpart().Datatype() != c.Datatype()) {
			t.Errorf("%v", c)
		}
	}
	for _, d := range []protocol.Datatype{protocol.Int, protocol.Float} {
		if got, err := protocol.ParseDatatype(d.String()); err != nil || got != d || d.SendCall().Datatype() != d ||
			!d.RecvCall().IsRecv() {
			t.Errorf("%v: %v, %v", d, got, err)
		}
	}
	for _, p := range []protocol.Profile{protocol.CloudFPGA, protocol.V09, protocol.Extended} {
		if got, err := protocol.ParseProfile(p.String()); err != nil || got != p {
			t.Errorf("%v: %v, %v", p, got, err)
		}
	}
	if _, err := protocol.ParseProfile("x"); err == nil {
		t.Error("profile x exists")
	}
}

func TestCodecAllocatesNothing(t *testing.T) {
	good := unhex(t, examples[1].bytes)
	bad := append(bytes.Clone(good[:18]), 1)
	bad = append(bad, good[19:]...)
	var buf [protocol.HeaderLen]byte
	var h protocol.Header
	if n := testing.AllocsPerRun(100, func() {
		h, _ = protocol.CloudFPGA.Parse(good)
		protocol.CloudFPGA.Put(buf[:], h)
		protocol.CloudFPGA.Parse(bad)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzHeader(f *testing.F) {
	for _, ex := range examples {
		f.Add(unhex(f, ex.bytes))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, p := range []protocol.Profile{protocol.CloudFPGA, protocol.V09} {
			h, err := p.Decode(b)
			if err != nil {
				var he *protocol.HeaderError
				if !errors.As(err, &he) || he.Error() == "" {
					t.Fatalf("%v", err)
				}
				continue
			}
			if again := p.Append(nil, h); !bytes.Equal(again, b[:protocol.HeaderLen]) {
				t.Fatalf("%x decodes to %v, which encodes to %x", b, h, again)
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	h := examples[1].h
	var buf [protocol.HeaderLen]byte
	b.ReportAllocs()
	for b.Loop() {
		protocol.CloudFPGA.Put(buf[:], h)
	}
}

func BenchmarkDecode(b *testing.B) {
	good := unhex(b, examples[1].bytes)
	b.ReportAllocs()
	for b.Loop() {
		if _, d := protocol.CloudFPGA.Parse(good); !d.OK() {
			b.Fatal(d)
		}
	}
}
