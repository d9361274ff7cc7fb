package wireshark_test

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// sessions holds the sessions of the two ranks.
var sessions = [2]protocol.Session{0x5be6f7a8a1b2c3d4, 0x9c8d7e6f01020304}

// extended returns a packet of the extended profile.
func extended(h protocol.ExtHeader, payload []byte) packet {
	h.Dst = 1 - h.Src
	h.Session, h.PeerSession = sessions[h.Src], sessions[h.Dst]
	h.Clock = 0xc0ffee01
	return from(h.Src, protocol.AppendExtended(nil, &h, payload))
}

// extendedTalk returns a rendezvous message of 3000 bytes from rank 0, an eager message of 5 bytes back, and a close.
// After them come a packet whose checksum covers only its header, a question, and the two parts of the report that
// answers it.
func extendedTalk() []packet {
	type h = protocol.ExtHeader
	ack := protocol.AppendAck(nil,
		&protocol.AckInfo{MessageLimit: 65537, EagerLimit: 1 << 20, Delay: 1250 * time.Microsecond,
			Ranges: []protocol.Range{{First: 5, End: 7}, {First: 9, End: 10}}})
	p := words(3000)
	return []packet{
		extended(h{Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello}, nil),
		extended(h{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Acknowledged: 1}, ack),
		extended(h{Type: protocol.SendRequest, Flags: protocol.FlagSync, Number: 1, Acknowledged: 1, Message: 1,
			Comm: 3, Tag: 1<<31 - 1, Length: 3000}, nil),
		extended(h{Src: 1, Type: protocol.ClearToSend, Call: protocol.RecvInt, Number: 1, Acknowledged: 2, Message: 1,
			Length: 3000}, nil),
		extended(h{Type: protocol.Data, Number: 2, Acknowledged: 2, Message: 1, Comm: 3, Tag: 5, Length: 3000},
			p[:1336]),
		extended(h{Type: protocol.Data, Number: 3, Acknowledged: 2, Message: 1, Comm: 3, Tag: 5, Length: 3000,
			Offset: 1336}, p[1336:2672]),
		extended(h{Type: protocol.Data, Flags: protocol.FlagAckNow, Number: 1<<32 - 1, Acknowledged: 2, Message: 1,
			Comm: 3, Tag: 5, Length: 3000, Offset: 2672}, p[2672:]),
		extended(h{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Acknowledged: 5}, ack[:12]),
		extended(h{Src: 1, Type: protocol.Data, Flags: protocol.FlagEager, Number: 2, Acknowledged: 5, Message: 1,
			Length: 5}, []byte("hello")),
		extended(h{Type: protocol.Ack, Call: protocol.RecvInt, Acknowledged: 3}, ack[:20]),
		extended(h{Src: 1, Type: protocol.Data, Call: protocol.SendFloat, Flags: protocol.FlagEager, Number: 3,
			Message: 2}, nil),
		extended(h{Type: protocol.Error, Acknowledged: 3, Tag: 4}, nil),
		extended(h{Src: 1, Type: protocol.Data, Flags: protocol.FlagEager | protocol.FlagPlain, Number: 4, Message: 3,
			Length: 8}, []byte("as it is")),
		extended(h{Type: protocol.Ack, Call: protocol.RecvInt, Flags: protocol.FlagHello, Acknowledged: 3, Tag: 6},
			ack[:20]),
		extended(h{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Acknowledged: 3, Tag: 6, Length: 1052},
			p[:1024]),
		extended(h{Src: 1, Type: protocol.Ack, Call: protocol.RecvInt, Acknowledged: 3, Tag: 6, Length: 1052,
			Offset: 1024}, p[1024:1052]),
	}
}

// resealed returns a packet with a correct checksum, for example after an edit.
func resealed(p packet) packet {
	clear(p.payload[24:28])
	binary.LittleEndian.PutUint32(p.payload[24:], crc32.Checksum(p.payload, crc32.MakeTable(crc32.Castagnoli)))
	return p
}

// extendedLookalike returns payload that resembles a valid header of the extended profile.
func extendedLookalike(n int) []byte {
	b := protocol.AppendExtended(nil, &protocol.ExtHeader{Type: protocol.Data, Length: 1 << 20},
		words(n-protocol.ExtHeaderLen))
	b[n-1]++
	return b
}

// expectExtended compares a frame with its packet as package protocol decodes it.
func expectExtended(t *testing.T, n int, f frame, packet []byte) {
	t.Helper()
	h, payload, d := protocol.ParseExtended(packet)
	if !d.OK() {
		t.Fatal(d.Err())
	}
	info := h.Describe(len(payload))
	want := map[string]string{
		"mark.start": "96969696", "mark.end": "96969696", "dst_rank": fmt.Sprint(h.Dst), "src_rank": fmt.Sprint(h.Src),
		"size": fmt.Sprint(h.Size()), "call": fmt.Sprint(uint8(h.Call)), "type": fmt.Sprint(uint8(h.Type)),
		"ext.version": "0xe2", "ext.flags": fmt.Sprintf("0x%02x", 0x80|uint8(h.Flags)),
		"ext.payload_length": fmt.Sprint(len(payload)),
		"ext.checksum":       fmt.Sprintf("0x%08x", binary.LittleEndian.Uint32(packet[24:])),
		"ext.session":        "0x" + h.Session.String(), "ext.peer_session": "0x" + h.PeerSession.String(),
		"ext.number": fmt.Sprint(h.Number), "ext.acknowledged": fmt.Sprint(h.Acknowledged),
		"ext.message":      fmt.Sprint(h.Message),
		"ext.communicator": fmt.Sprint(h.Comm), "ext.length": fmt.Sprint(h.Length), "ext.offset": fmt.Sprint(h.Offset),
		"ext.clock": fmt.Sprint(h.Clock),
	}
	for i, name := range []string{"eager", "ack_now", "sync", "hello", "retransmit", "plain"} {
		want["ext.flags."+name] = fmt.Sprint(uint8(h.Flags) >> i & 1)
	}
	_, question := h.Question()
	_, report := h.Report()
	switch {
	case h.Type == protocol.Error:
		want["ext.code"] = fmt.Sprint(h.Tag)
	case question:
		want["ext.question"] = fmt.Sprint(h.Tag)
	case report:
		want["ext.report"] = fmt.Sprint(h.Tag)
	default:
		want["ext.tag"] = fmt.Sprint(h.Tag)
	}
	if a, ok := protocol.ParseAck(payload, nil); ok && h.Type == protocol.Ack && !report {
		info += " " + a.String()
		want["ext.message_limit"], want["ext.eager_limit"], want["ext.delay"] = fmt.Sprint(a.MessageLimit),
			fmt.Sprint(a.EagerLimit), fmt.Sprint(a.Delay.Microseconds())
		var first, end []string
		for _, r := range a.Ranges {
			first, end = append(first, fmt.Sprint(r.First)), append(end, fmt.Sprint(r.End))
		}
		want["ext.range.first"], want["ext.range.end"] = strings.Join(first, " "), strings.Join(end, " ")
	} else if len(payload) > 0 {
		want["payload"] = fmt.Sprintf("%x", payload)
	}
	for _, field := range fields {
		if got := strings.Join(f[field], " "); got != want[strings.TrimPrefix(field, "zrlmpi.")] {
			t.Errorf("frame %d: %s is %q, want %q", n, field, got, want[strings.TrimPrefix(field, "zrlmpi.")])
		}
	}
	if got := f.one(t, "_ws.col.Info"); got != info {
		t.Errorf("frame %d: %q, want %q", n, got, info)
	}
}

func TestExtended(t *testing.T) {
	t.Parallel()
	talk := extendedTalk()
	for name, change := range map[string]func(*packet){
		"udp":         func(*packet) {},
		"other ports": func(p *packet) { p.src, p.dst = port(p.src, 40000, 41000), port(p.dst, 40000, 41000) },
		"IPv6":        func(p *packet) { p.src, p.dst = ipv6(p.src), ipv6(p.dst) },
		"tcp":         func(p *packet) { p.tcp = true },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			packets := slices.Clone(talk)
			for i := range packets {
				change(&packets[i])
				if packets[i].tcp && packets[i].src == rank(1) {
					packets[i].dst += " 40000"
				} else if packets[i].tcp {
					packets[i].src += " 40000"
				}
			}
			for i, f := range dissect(t, write(t, packets...)) {
				expectExtended(t, i+1, f, talk[i].payload)
			}
		})
	}
}

func TestExtendedStreams(t *testing.T) {
	t.Parallel()
	talk := extendedTalk()
	all := slices.Concat(talk[2].payload, talk[4].payload, talk[11].payload) // 80 + 1416 + 80 bytes
	for _, c := range []struct {
		name           string
		packets        []packet
		want           map[int]string
		types, numbers string
	}{
		{name: "in one segment", packets: stream(all), want: map[int]string{1: "error_packet"}, types: "1,3,5",
			numbers: "1,2,0"},
		{name: "headers in pieces", packets: stream(all, 1, 19, 20, 31, 32, 79, 80, 81+80),
			want: map[int]string{9: "error_packet"}, types: "- - - - - - 1 - 3,5", numbers: "- - - - - - 1 - 2,0"},
		{name: "corrupt", packets: stream(slices.Concat(talk[2].payload, talk[4].edit(100, 1).payload)),
			want: map[int]string{1: "bad_checksum"}, types: "1,3", numbers: "1,2"},
		{name: "too long", packets: stream(talk[4].edit(22, 1).payload), want: map[int]string{1: "size_mismatch"},
			types: "3", numbers: "2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			frames := dissect(t, write(t, c.packets...))
			expectExperts(t, frames, c.want)
			expectFields(t, frames, "zrlmpi.type", c.types)
			expectFields(t, frames, "zrlmpi.ext.number", c.numbers)
		})
	}
}

// With segmentation offload, a recording made on the sender contains several packets in one datagram. With a short
// snapshot length, it still contains their headers.
func TestExtendedPieces(t *testing.T) {
	t.Parallel()
	talk := extendedTalk()
	frames := dissect(t, write(t, from(0, slices.Concat(talk[4].payload, talk[5].payload, talk[6].payload))))
	expectExperts(t, frames, nil)
	expectFields(t, frames, "zrlmpi.ext.offset", "0,1336,2672")
	short := talk[4]
	short.cut = 1300
	frames = dissect(t, write(t, short))
	expectExperts(t, frames, nil)
	expectFields(t, frames, "zrlmpi.ext.payload_length", "1336")
	several := from(0, slices.Concat(talk[4].payload, talk[5].payload, talk[6].payload))
	several.cut = len(talk[6].payload) + 100
	frames = dissect(t, write(t, several))
	expectExperts(t, frames, nil)
	expectFields(t, frames, "zrlmpi.ext.offset", "0,1336")
}

// With PLAIN, corrupt payload is not an error, but a corrupt flag is.
func TestExtendedPlain(t *testing.T) {
	t.Parallel()
	plain := extendedTalk()[12]
	frames := dissect(t, write(t, plain, plain.edit(83, 1), plain.edit(79, 2), plain.edit(19, 0x81)))
	expectExperts(t, frames, map[int]string{3: "bad_checksum", 4: "bad_checksum"})
}

// The dissector and decode agree on the extended profile as well.
func TestExtendedDecodeSaysTheSame(t *testing.T) {
	t.Parallel()
	file := write(t, join(extendedTalk(), []packet{extendedTalk()[4].edit(100, 1)})...)
	frames, lines := dissect(t, file), decode(t, file)
	if len(lines) != len(frames) {
		t.Fatalf("%d lines, %d frames", len(lines), len(frames))
	}
	for i, f := range frames {
		d := lines[i]
		if d.Extended == nil {
			t.Fatalf("line %d is no packet of the extended profile", i+1)
		}
		for field, value := range map[string]int{
			"number": d.Extended.Number, "acknowledged": d.Extended.Acknowledged, "message": d.Extended.Message,
			"length": d.Extended.Length, "offset": d.Extended.Offset, "payload_length": d.Extended.Payload,
		} {
			if got := f.one(t, "zrlmpi.ext."+field); got != itoa(value) {
				t.Errorf("frame %d: %s is %s here and %d there", i+1, field, got, value)
			}
		}
		if got := types[f.one(t, "zrlmpi.type")]; got != d.Type {
			t.Errorf("frame %d: type is %s here and %s there", i+1, got, d.Type)
		}
		if bad := slices.Contains(f.experts(), "bad_checksum"); bad != (d.Reason == "checksum") ||
			bad != (i == len(frames)-1) {
			t.Errorf("frame %d: the checksum is bad: %v here, %q there", i+1, bad, d.Reason)
		}
	}
}
