package wireshark_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

const millisecond = time.Millisecond

// message returns a complete message of 4000 bytes in three datagrams of 1384, 1416 and 1200 bytes.
func message() []packet {
	p := words(4000)
	return []packet{request(), clearing(), data(1000, p[:1384]), bare(p[1384:2800]), bare(p[2800:]), ack()}
}

// short returns a complete message whose DATA is one datagram.
func short() []packet {
	return []packet{request(), clearing(), data(3, words(12)), ack()}
}

func join(parts ...[]packet) []packet { return slices.Concat(parts...) }

// insert inserts packets before the packet with index i.
func insert(list []packet, i int, packets ...packet) []packet {
	return slices.Insert(slices.Clone(list), i, packets...)
}

func drop(list []packet, i int) []packet { return slices.Delete(slices.Clone(list), i, i+1) }

func replace(list []packet, i int, p packet) []packet {
	list = slices.Clone(list)
	list[i] = p
	return list
}

// damage is a capture with a fault and the expected result.
type damage struct {
	name    string
	packets []packet
	want    map[int]string // expert infos by frame
	// messages lists the message number of each frame, and offsets the offset of each frame's payload. "-" means that
	// the frame has none. An empty string is not compared.
	messages, offsets string
	options           []string
}

var v09 = []string{"-o", "zrlmpi.profile:v0.9"}

// lookalike returns payload that resembles a valid header.
func lookalike(n int) []byte {
	return append(header(protocol.Data, 0, 1, protocol.SendInt, 5), words(n-protocol.HeaderLen)...)
}

func damages() []damage {
	m, s := message(), short()
	p := words(4000)
	tail := words(1384 + 32) // a message whose second datagram carries 32 bytes
	answer := from(1, header(protocol.SendRequest, 1, 0, protocol.SendInt, 0))
	tagged := protocol.V09.Append(nil, protocol.Header{Type: protocol.SendRequest, Src: 0, Dst: 1, Tag: 7})
	return []damage{
		{name: "nothing", packets: join(m, s, s), messages: "1 1 1 1 1 1 2 2 2 2 3 3 3 3",
			offsets: "- - 0 1384 2800 - - - 0 - - - 0 -"},

		// Retransmissions and duplicates.
		{name: "request retransmitted", packets: insert(m, 1, request().later(100*millisecond)),
			want: map[int]string{2: "retransmitted_packet"}, messages: "1 1 1 1 1 1 1"},
		{name: "request duplicated", packets: insert(m, 1, request()), want: map[int]string{2: "duplicate_packet"},
			messages: "1 1 1 1 1 1 1"},
		{name: "clear retransmitted", packets: insert(m, 2, clearing().later(60*millisecond)),
			want: map[int]string{3: "retransmitted_packet"}},
		{name: "clear duplicated in mid-message", packets: insert(m, 3, clearing()),
			want: map[int]string{4: "duplicate_packet"}, offsets: "- - 0 - 1384 2800 -"},
		{name: "ack duplicated", packets: append(slices.Clone(s), ack()), want: map[int]string{5: "duplicate_packet"},
			messages: "1 1 1 1 1"},
		{name: "data retransmitted, acknowledged again",
			packets: append(slices.Clone(s), s[2].later(200*millisecond), ack()),
			want:    map[int]string{5: "retransmitted_packet", 6: "retransmitted_packet"}, messages: "1 1 1 1 1 1",
			offsets: "- - 0 - 0 -"},
		{name: "data duplicated", packets: insert(s, 3, s[2]), want: map[int]string{4: "duplicate_packet"},
			messages: "1 1 1 1 1"},
		{name: "cut data retransmitted whole", packets: join(m[:5], []packet{m[2].later(100 * millisecond)}, m[3:]),
			want: map[int]string{6: "retransmitted_packet"}, offsets: "- - 0 1384 2800 0 1384 2800 -"},
		{name: "first datagram twice, the message starts over", packets: insert(m, 3, m[2]),
			want: map[int]string{4: "duplicate_packet"}, offsets: "- - 0 0 1384 2800 -"},
		{name: "retransmission after a lost datagram",
			packets: join(m[:4], []packet{m[2].later(100 * millisecond)}, m[3:]),
			want:    map[int]string{5: "retransmitted_packet"}, offsets: "- - 0 1384 0 1384 2800 -"},

		// Missing packets.
		{name: "no ack was recorded", packets: join(m[:5], s), messages: "1 1 1 1 1 2 2 2 2"},
		{name: "no request was recorded", packets: s[1:], want: map[int]string{1: "stale_header"}, messages: "- 1 1"},
		{name: "no clear was recorded", packets: drop(s, 1), want: map[int]string{2: "unsolicited_data"},
			messages: "1 1 1"},
		{name: "data alone", packets: s[2:], want: map[int]string{1: "unsolicited_data"}, messages: "1 1"},
		{name: "no header was recorded", packets: drop(m, 2),
			want: map[int]string{3: "unexpected_payload", 4: "unexpected_payload"}, messages: "1 1 1 1 1"},
		{name: "a datagram is lost", packets: drop(m, 3), want: map[int]string{4: "gap", 5: "size_mismatch"},
			offsets: "- - 0 - -"},
		{name: "the last datagram is lost", packets: join(drop(m, 4), s), want: map[int]string{5: "size_mismatch"},
			messages: "1 1 1 1 1 2 2 2 2", offsets: "- - 0 1384 - - - 0 -"},
		{name: "no ack, and then another data", packets: append(slices.Clone(s[:3]), data(2, words(8)), ack()),
			want: map[int]string{4: "unsolicited_data"}, messages: "1 1 1 2 2"},

		{name: "broken off, and another data",
			packets: append(slices.Clone(m[:4]), data(2, words(8)).later(60*millisecond)),
			want:    map[int]string{5: "unsolicited_data"}, messages: "1 1 1 1 2", offsets: "- - 0 1384 0"},

		// Additional packets.
		{name: "stale clear", packets: append(slices.Clone(s), clearing()), want: map[int]string{5: "stale_header"},
			messages: "1 1 1 1 -"},
		{name: "stale clear is used", packets: join(s, []packet{clearing(), request(), s[2], ack()}),
			want: map[int]string{5: "stale_header"}, messages: "1 1 1 1 - 2 2 2"},
		{name: "clear behind the data", packets: []packet{request(), s[2].edit(32, 9), clearing()},
			want: map[int]string{2: "unsolicited_data", 3: "stale_header"}},
		{name: "stale ack", packets: append(slices.Clone(s), ack().later(time.Second)),
			want: map[int]string{5: "stale_header"}, messages: "1 1 1 1 -"},
		{name: "ack of nothing", packets: []packet{ack(), request()}, want: map[int]string{1: "stale_header"},
			messages: "- 1"},
		{name: "ack comes behind the next request", packets: []packet{s[0], s[1], s[2], request(), ack()},
			messages: "1 1 1 2 1"},
		{name: "late ack", packets: replace(s, 3, ack().later(200*millisecond)), messages: "1 1 1 1"},
		{name: "error", packets: []packet{request(), from(1, header(protocol.Error, 1, 0, protocol.RecvInt, 0)),
			request()},
			want: map[int]string{2: "error_packet"}, messages: "1 1 2"},
		{name: "error, and the request after it",
			packets: insert(s, 1, from(1, header(protocol.Error, 1, 0, protocol.RecvInt, 0)), request()),
			want:    map[int]string{2: "error_packet"}, messages: "1 1 2 2 2 2"},
		{name: "error about nothing", packets: []packet{from(1, header(protocol.Error, 1, 0, protocol.RecvInt, 0))},
			want: map[int]string{1: "error_packet stale_header"}},
		{name: "requests cross", packets: []packet{request(), answer, clearing()},
			want: map[int]string{2: "crossed_requests"}, messages: "1 2 1"},
		{name: "a crossed request is retransmitted",
			want: map[int]string{2: "crossed_requests", 6: "retransmitted_packet"}, messages: "1 2 2 2 2 1",
			packets: []packet{request(), answer, from(0, header(protocol.ClearToSend, 0, 1, protocol.RecvInt, 0)),
				from(1, header(protocol.Data, 1, 0, protocol.SendInt, 0)),
				from(0, header(protocol.Ack, 0, 1, protocol.RecvInt, 0)), request()}},

		// Headers.
		{name: "reserved byte", packets: replace(s, 0, request().edit(27, 1)), want: map[int]string{1: "reserved_byte"},
			messages: "1 1 1 1"},
		{name: "tag", packets: replace(s, 0, from(0, tagged)), want: map[int]string{1: "reserved_byte"}},
		{name: "tag, v0.9", packets: []packet{from(0, tagged), clearing().edit(18, 7), s[2].edit(18, 7),
			ack().edit(18, 7)}, options: v09, messages: "1 1 1 1"},
		{name: "another tag, v0.9", packets: []packet{from(0, tagged), clearing()}, options: v09,
			want: map[int]string{2: "datatype_mismatch"}},
		{name: "reserved byte, v0.9", packets: []packet{request().edit(19, 1)}, options: v09,
			want: map[int]string{1: "reserved_byte"}},
		{name: "call", packets: []packet{request().edit(16, 5)}, want: map[int]string{1: "bad_header"}, messages: "-"},
		{name: "type 0", packets: []packet{request().edit(17, 0)}, want: map[int]string{1: "bad_header"},
			messages: "-"},
		{name: "type 6", packets: []packet{request().edit(17, 6)}, want: map[int]string{1: "bad_header"},
			messages: "-"},
		{name: "reserved byte and type", packets: []packet{request().edit(17, 6, 1)},
			want: map[int]string{1: "reserved_byte"}, messages: "-"},
		{name: "start mark", packets: []packet{request().edit(3, 0)}, want: map[int]string{1: "bad_header"}},
		{name: "end mark", packets: []packet{request().edit(28, 0)}, want: map[int]string{1: "bad_header"}},
		{name: "too short", packets: []packet{request(), bare(request().payload[:31])},
			want: map[int]string{2: "bad_header"}},
		{name: "noise from a stranger", packets: []packet{bare(words(31)), bare(words(300))},
			want: map[int]string{1: "bad_header", 2: "bad_header"}},
		{name: "bad header in mid-message", packets: insert(m, 3, request().edit(20, 1)),
			want: map[int]string{4: "reserved_byte duplicate_packet"}, offsets: "- - 0 - 1384 2800 -"},
		{name: "receive call in a request", packets: []packet{request().edit(16, 1)},
			want: map[int]string{1: "wrong_call"}, messages: "-"},
		{name: "send call in an ack", packets: replace(s, 3, ack().edit(16, 0)), want: map[int]string{4: "wrong_call"},
			messages: "1 1 1 -"},
		{name: "request revoked",
			packets: join([]packet{request(), request().edit(16, 4).edit(12, 1), request().edit(12, 1)}, s[1:]),
			want:    map[int]string{2: "revocation"}, messages: "1 1 2 2 2 2"},
		{name: "clear revoked",
			packets: join(s[:2], []packet{clearing().edit(16, 4).edit(12, 1), request().edit(12, 1)}, s[1:]),
			want:    map[int]string{3: "revocation"}, messages: "1 1 1 1 1 1 1"},
		{name: "clear revoked in mid-message", packets: insert(m, 3, clearing().edit(16, 4).edit(12, 1)),
			want: map[int]string{4: "revocation", 7: "stale_header"}, offsets: "- - 0 - 1384 2800 -"},
		{name: "barrier", packets: []packet{request().edit(16, 4)}, want: map[int]string{1: "wrong_call"},
			messages: "-"},
		{name: "clear with the other datatype", packets: replace(s, 1, clearing().edit(16, 3)),
			want: map[int]string{2: "datatype_mismatch"}},
		{name: "data with the other datatype", packets: replace(s, 2, s[2].edit(16, 2)),
			want: map[int]string{3: "datatype_mismatch"}},
		{name: "ack with the other datatype", packets: replace(s, 3, ack().edit(16, 3)),
			want: map[int]string{4: "datatype_mismatch"}},
		{name: "size in a control packet does not matter", packets: replace(s, 0, request().edit(12, 9)),
			messages: "1 1 1 1"},
		{name: "an address speaks for two ranks", packets: join(s, []packet{request().edit(8, 5)}),
			want: map[int]string{5: "wrong_source"}, messages: "1 1 1 1 2"},
		{name: "a rank speaks from two addresses",
			packets: join(s, []packet{{src: "10.0.0.77", dst: rank(1), payload: request().payload}}),
			want:    map[int]string{5: "wrong_source"}},
		{name: "another port of the same address",
			packets: join(s, []packet{{src: rank(0) + " 2719", dst: rank(1), payload: request().payload}})},
		{name: "another rank is meant", packets: join(s, []packet{request().edit(4, 9)}),
			want: map[int]string{5: "wrong_destination"}},

		// Lengths and times (D3, D6, D9, D11).
		{name: "long control packet", packets: []packet{from(0, append(request().payload, words(8)...))},
			want: map[int]string{1: "size_mismatch"}, messages: "-"},
		{name: "data with too little", packets: replace(s, 2, data(4, words(12))),
			want: map[int]string{3: "size_mismatch"}, offsets: "- - - -"},
		{name: "data with too much", packets: replace(s, 2, data(3, append(words(12), make([]byte, 8)...))),
			want: map[int]string{3: "size_mismatch"}},
		{name: "padding is not zero", packets: replace(s, 2, data(3, words(16))),
			want: map[int]string{3: "size_mismatch"}},
		{name: "padded", packets: replace(s, 2, data(3, append(words(12), make([]byte, 4)...))),
			want: map[int]string{3: "padding"}, offsets: "- - 0 -"},
		{name: "no words", packets: replace(s, 2, data(0, nil)), offsets: "- - 0 -"},
		{name: "no words, padded", packets: replace(s, 2, data(0, make([]byte, 8))), want: map[int]string{3: "padding"},
			offsets: "- - 0 -"},
		{name: "long tail", packets: replace(s, 2, data(347, append(words(1388), 0, 0, 0, 0))),
			want: map[int]string{3: "padding"}, offsets: "- - 0 -"},
		{name: "longer than a long tail: two datagrams", packets: replace(s, 2, data(349, words(1396))),
			offsets: "- - 0,1384 -"},
		{name: "split by the shell",
			packets: join(s[:2], []packet{data(347, p[:1384]), bare(append(p[1384:1388:1388], 0, 0, 0, 0)), ack()}),
			want:    map[int]string{4: "padding"}, offsets: "- - 0 1384 -"},
		{name: "split elsewhere", packets: join(m[:3], []packet{m[3], bare(p[2800:3600]), bare(p[3600:]), ack()}),
			want:    map[int]string{5: "size_mismatch", 6: "unexpected_payload", 7: "size_mismatch"},
			offsets: "- - 0 1384 - - -"},
		{name: "a datagram too short", packets: replace(m, 3, bare(p[1384:2400])),
			want:    map[int]string{4: "size_mismatch", 5: "unexpected_payload", 6: "size_mismatch"},
			offsets: "- - 0 - - -"},
		{name: "a copy too many", packets: insert(m, 4, m[3]),
			want:    map[int]string{5: "size_mismatch", 6: "unexpected_payload", 7: "size_mismatch"},
			offsets: "- - 0 1384 - - -"},
		{name: "last two swapped", packets: join(m[:3], []packet{m[4], m[3], m[5]}),
			want: map[int]string{4: "gap", 5: "unexpected_payload", 6: "size_mismatch"}},
		{name: "gap", packets: replace(m, 4, m[4].later(60*millisecond)),
			want: map[int]string{5: "gap", 6: "size_mismatch"}, offsets: "- - 0 1384 - -"},
		{name: "gap, longer allowed", packets: replace(m, 4, m[4].later(60*millisecond)),
			options: []string{"-o", "zrlmpi.gap:80"}, offsets: "- - 0 1384 2800 -"},
		{name: "smaller datagrams",
			packets: join(s[:2], []packet{data(250, p[:480]), bare(p[480:992]), bare(p[992:1000]), ack()}),
			options: []string{"-o", "zrlmpi.max_datagram:512"}, offsets: "- - 0 480 992 -"},
		{name: "smaller datagrams than expected", packets: join(s[:2], []packet{data(250, p[:480])}),
			want: map[int]string{3: "size_mismatch"}},

		// Packets and payload (D8).
		{name: "request in mid-message", packets: insert(m, 4, request()), want: map[int]string{5: "duplicate_packet"},
			offsets: "- - 0 1384 - 2800 -"},
		{name: "request breaks off a message", packets: insert(m[:4], 4, request().later(60*millisecond)),
			messages: "1 1 1 1 2"},
		{name: "32 bytes that resemble a request",
			packets: join(m[:2], []packet{data(354, tail[:1384]), request(), ack()}), offsets: "- - 0 1384 -"},
		{name: "32 bytes of payload", packets: join(m[:2], []packet{data(354, tail[:1384]), bare(tail[1384:]), ack()}),
			offsets: "- - 0 1384 -"},
		{name: "payload that resembles data", packets: replace(m, 3, bare(lookalike(1416))),
			offsets: "- - 0 1384 2800 -"},
		{name: "payload that resembles data of this size",
			packets: replace(m, 3, bare(append(header(protocol.Data, 0, 1, protocol.SendInt, 1000), p[1:1385]...))),
			offsets: "- - 0 1384 2800 -"},
		{name: "32 bytes that resemble a request of other ranks", packets: insert(m, 4, request().edit(8, 9)),
			want: map[int]string{5: "size_mismatch", 6: "unexpected_payload", 7: "size_mismatch"}},

		// The extended profile.
		{name: "extended", packets: extendedTalk(), want: map[int]string{12: "error_packet"}},
		{name: "extended, corrupt", packets: []packet{extendedTalk()[4].edit(100, 1)},
			want: map[int]string{1: "bad_checksum"}},
		{name: "extended, corrupt, not checked", packets: []packet{extendedTalk()[4].edit(100, 1)},
			options: []string{"-o", "zrlmpi.checksum:FALSE"}},
		{name: "extended, the checksum is", packets: []packet{extendedTalk()[4].edit(27, 1)},
			want: map[int]string{1: "bad_checksum"}},
		{name: "extended, too short", packets: []packet{from(0, extendedTalk()[4].payload[:71])},
			want: map[int]string{1: "bad_header"}},
		{name: "extended, cut off", packets: []packet{from(0, extendedTalk()[4].payload[:90])},
			want: map[int]string{1: "size_mismatch"}},
		{name: "extended, end mark", packets: []packet{extendedTalk()[4].edit(30, 0)},
			want: map[int]string{1: "bad_header"}},
		{name: "extended, call", packets: []packet{extendedTalk()[4].edit(16, 5)},
			want: map[int]string{1: "bad_header"}},
		{name: "extended, reserved flag", packets: []packet{resealed(extendedTalk()[4].edit(19, 0xc0))},
			want: map[int]string{1: "reserved_byte"}},
		{name: "extended, another version", packets: []packet{extendedTalk()[4].edit(18, 0xe1)},
			want: map[int]string{1: "reserved_byte unsolicited_data"}},
		{name: "extended, retransmitted", packets: []packet{resealed(extendedTalk()[4].edit(19, 0x90))},
			want: map[int]string{1: "retransmitted_packet"}},
		{name: "payload that resembles extended", packets: replace(m, 3, bare(extendedLookalike(1416))),
			offsets: "- - 0 1384 2800 -"},
	}
}

func TestCorruptCaptures(t *testing.T) {
	t.Parallel()
	for _, d := range damages() {
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			file := write(t, d.packets...)
			frames := dissect(t, file, d.options...)
			expectExperts(t, frames, d.want)
			expectFields(t, frames, "zrlmpi.message", d.messages)
			expectFields(t, frames, "zrlmpi.data.offset", d.offsets)
		})
	}
}

// expectFields compares the values of a field in all frames with want.
func expectFields(t *testing.T, frames []frame, field, want string) {
	t.Helper()
	if want == "" {
		return
	}
	var got []string
	for _, f := range frames {
		if values := f[field]; len(values) > 0 {
			got = append(got, strings.Join(values, ","))
		} else {
			got = append(got, "-")
		}
	}
	if got := strings.Join(got, " "); got != want {
		t.Errorf("%s is %s, want %s", field, got, want)
	}
}

// DATA sent in response to a stale CLEAR_TO_SEND links to it.
func TestStaleClearIsLinked(t *testing.T) {
	t.Parallel()
	frames := dissect(t, write(t, join(short(), []packet{clearing()}, drop(short(), 1))...))
	expectFields(t, frames, "zrlmpi.clear_in", "- - 2 - - - 5 -")
	expectFields(t, frames, "zrlmpi.time_data", "- - 0.000100000 - - - 0.000200000 -")
}

// The same packets are decoded in the same way over any network, even if one capture contains several networks.
func TestNetworks(t *testing.T) {
	t.Parallel()
	plain := dissect(t, write(t, message()...))
	for _, c := range []struct {
		name   string
		change func(*packet)
	}{
		{"VLAN", func(p *packet) { p.vlans = []uint16{17} }},
		{"two VLAN tags", func(p *packet) { p.vlans = []uint16{17, 4000} }},
		{"IPv6", func(p *packet) { p.src, p.dst = ipv6(p.src), ipv6(p.dst) }},
		{"IPv6 in a VLAN", func(p *packet) { p.src, p.dst, p.vlans = ipv6(p.src), ipv6(p.dst), []uint16{2} }},
		{"the last port of shared addresses",
			func(p *packet) { p.src, p.dst = port(p.src, 2845, 2719), port(p.dst, 2845, 2719) }},
		{"other ports", func(p *packet) { p.src, p.dst = port(p.src, 40000, 41000), port(p.dst, 40000, 41000) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			packets := message()
			for i := range packets {
				c.change(&packets[i])
			}
			if err := differences(plain, dissect(t, write(t, packets...))); err != nil {
				t.Error(err)
			}
		})
	}
}

// ipv6 returns an IPv6 address for a rank's IPv4 address.
func ipv6(addr string) string { return "fd00::" + addr[strings.LastIndexByte(addr, '.')+1:] }

// port adds a port to each rank's address.
func port(addr string, ports ...int) string {
	return addr + " " + itoa(ports[addr[len(addr)-1]-'1'])
}

func TestConversationsSideBySide(t *testing.T) {
	t.Parallel()
	const n = 5
	var all []packet
	for i := range message() {
		for k := range n {
			p := message()[i]
			p.src, p.dst = strings.Replace(p.src, "10.0.0", "10.0."+itoa(k), 1),
				strings.Replace(p.dst, "10.0.0", "10.0."+itoa(k), 1)
			all = append(all, p)
		}
	}
	frames := dissect(t, write(t, all...))
	single := dissect(t, write(t, message()...))
	expectExperts(t, frames, nil)
	for i, f := range frames {
		for _, field := range []string{"zrlmpi.data.offset", "zrlmpi.data.bytes", "zrlmpi.data.complete",
			"zrlmpi.payload"} {
			if got, want := f.one(t, field), single[i/n].one(t, field); got != want {
				t.Errorf("frame %d: %s is %q, want %q", i+1, field, got, want)
			}
		}
		if got := f.one(t, "zrlmpi.message"); got != itoa(i%n+1) {
			t.Errorf("frame %d is of message %s", i+1, got)
		}
	}
}

// If only the beginning of a datagram was recorded, the datagram still counts with its full length.
func TestShortSnapshots(t *testing.T) {
	t.Parallel()
	packets := message()
	for i := range packets {
		if len(packets[i].payload) > 100 {
			packets[i].cut = len(packets[i].payload) - 100
		}
	}
	frames := dissect(t, write(t, packets...))
	expectExperts(t, frames, nil)
	expectFields(t, frames, "zrlmpi.data.offset", "- - 0 1384 2800 -")
	expectFields(t, frames, "zrlmpi.data.bytes", "- - 1384 1416 1200 -")
	if got := frames[3].one(t, "zrlmpi.payload"); len(got) != 200 {
		t.Errorf("the payload has %d digits", len(got))
	}
}

// An ICMP error quotes a packet, which must not count as a retransmission.
func TestQuotedPackets(t *testing.T) {
	t.Parallel()
	quoted := request()
	quoted.quoted = true
	frames := dissect(t, write(t, insert(short(), 1, quoted)...))
	expectExperts(t, frames, nil)
	expectFields(t, frames, "zrlmpi.message", "1 - 1 1 1")
	expectFields(t, frames, "zrlmpi.type", "1 1 2 3 4")
}

// Other protocols also use ports from 2719 on, and must still be dissected there.
func TestOtherProtocolsKeepTheirPorts(t *testing.T) {
	t.Parallel()
	mgcp := packet{src: "10.0.0.1 5000", dst: "10.0.0.2 2727", payload: []byte("AUEP 1200 *@example.net MGCP 1.0\r\n")}
	other := packet{src: "10.0.0.1 5000", dst: "10.0.0.2 2800", payload: bytes.Repeat([]byte("hello "), 10)}
	frames := dissect(t, write(t, mgcp, other))
	expectExperts(t, frames, nil)
	if got := frames[0].one(t, "_ws.col.Protocol"); got != "MGCP" {
		t.Errorf("MGCP is shown as %s", got)
	}
	if got := frames[1].one(t, "_ws.col.Protocol"); got != "UDP" {
		t.Errorf("unknown data is shown as %s", got)
	}
}
