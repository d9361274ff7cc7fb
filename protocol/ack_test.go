package protocol_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func TestAckRoundTrip(t *testing.T) {
	many := make([]protocol.Range, 0, 40)
	for i := range uint32(40) {
		many = append(many, protocol.Range{First: 10 * i, End: 10*i + 5})
	}
	type r = protocol.Range
	for _, c := range []struct {
		name       string
		sent, want protocol.AckInfo
		text       string
	}{
		{
			"no ranges", protocol.AckInfo{MessageLimit: 65537, EagerLimit: 1 << 20, Delay: 250 * time.Microsecond},
			protocol.AckInfo{MessageLimit: 65537, EagerLimit: 1 << 20, Delay: 250 * time.Microsecond},
			"messages<65537 eager<1048576 delay=250µs",
		},
		{
			"ranges", protocol.AckInfo{Ranges: []r{{14, 16}, {20, 21}}},
			protocol.AckInfo{Ranges: []r{{14, 16}, {20, 21}}}, "messages<0 eager<0 delay=0µs arrived=14..16,20",
		},
		{
			"over the end of the numbers",
			protocol.AckInfo{Ranges: []r{{1<<32 - 3, 1<<32 - 2}, {1<<32 - 1, 1}, {1, 2}}},
			protocol.AckInfo{Ranges: []r{{1<<32 - 3, 1<<32 - 2}, {1<<32 - 1, 1}, {1, 2}}}, "",
		},
		{"more than fit", protocol.AckInfo{Ranges: many}, protocol.AckInfo{Ranges: many[:32]}, ""},
		{"part of a microsecond", protocol.AckInfo{Delay: 1999}, protocol.AckInfo{Delay: time.Microsecond}, ""},
		{"a delay from the future", protocol.AckInfo{Delay: -time.Hour}, protocol.AckInfo{}, ""},
		{"a long delay", protocol.AckInfo{Delay: 1000 * time.Hour},
			protocol.AckInfo{Delay: (1<<32 - 1) * time.Microsecond}, ""},
	} {
		b := protocol.AppendAck([]byte("x"), &c.sent)[1:]
		got, ok := protocol.ParseAck(b, nil)
		if !ok || got.MessageLimit != c.want.MessageLimit || got.EagerLimit != c.want.EagerLimit ||
			got.Delay != c.want.Delay || !slices.Equal(got.Ranges, c.want.Ranges) {
			t.Errorf("%s: got %+v, %v", c.name, got, ok)
		}
		if c.text != "" && got.String() != c.text {
			t.Errorf("%s: prints as %q, want %q", c.name, got.String(), c.text)
		}
	}
}

func TestAckThatIsRefused(t *testing.T) {
	head := protocol.AppendAck(nil, &protocol.AckInfo{})
	ranges := func(n ...byte) []byte {
		b := bytes.Clone(head)
		for _, v := range n {
			b = append(b, v, 0, 0, 0)
		}
		return b
	}
	for name, b := range map[string][]byte{
		"nothing":              nil,
		"short":                head[:11],
		"half a range":         ranges(1),
		"an odd byte":          append(ranges(1, 2), 0),
		"an empty range":       ranges(3, 3),
		"an inverted range":    ranges(3, 2),
		"ranges that overlap":  ranges(3, 5, 4, 6),
		"ranges that descend":  ranges(3, 5, 1, 2),
		"33 ranges":            append(bytes.Clone(head), make([]byte, 33*8)...),
		"more than half of it": append(bytes.Clone(head), 1, 0, 0, 0, 2, 0, 0, 0x80),
	} {
		if a, ok := protocol.ParseAck(b, nil); ok {
			t.Errorf("%s: taken for %v", name, &a)
		}
	}
}

func FuzzAck(f *testing.F) {
	f.Add(protocol.AppendAck(nil,
		&protocol.AckInfo{Delay: time.Second, Ranges: []protocol.Range{{First: 14, End: 16}, {First: 20, End: 21}}}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		room := make([]protocol.Range, 0, protocol.MaxAckRanges)
		a, ok := protocol.ParseAck(b, room)
		if !ok {
			return
		}
		if again := protocol.AppendAck(nil, &a); !bytes.Equal(again, b) {
			t.Fatalf("%x decodes to %v, which encodes to %x", b, &a, again)
		}
		if len(a.Ranges) > 0 && &a.Ranges[0] != &room[:1][0] {
			t.Fatal("the caller's slice was not used")
		}
	})
}
