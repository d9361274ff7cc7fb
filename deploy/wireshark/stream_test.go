package wireshark_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

func itoa(n int) string { return strconv.Itoa(n) }

// stream sends bytes from rank 0 to rank 1 in segments that end at the given offsets.
func stream(b []byte, ends ...int) (packets []packet) {
	begin := 0
	for _, end := range append(ends, len(b)) {
		packets = append(packets, packet{src: rank(0) + " 40000", dst: rank(1), payload: b[begin:end], tcp: true})
		begin = end
	}
	return packets
}

// back sends one segment from rank 1 to rank 0.
func back(b []byte) packet {
	return packet{src: rank(1), dst: rank(0) + " 40000", payload: b, tcp: true}
}

func TestStreams(t *testing.T) {
	t.Parallel()
	asking, clears, acks := request().payload, clearing().payload, ack().payload
	p := words(20000)
	long := append(header(protocol.Data, 0, 1, protocol.SendInt, 5000), p...)
	// Streams have no padding, so 12 bytes are enough for 3 words.
	small := append(header(protocol.Data, 0, 1, protocol.SendInt, 3), p[:12]...)
	sized := slices.Clone(asking)
	sized[12] = 200 // only DATA is followed by payload, whatever the size
	for _, c := range []struct {
		name                       string
		packets                    []packet
		want                       map[int]string
		types, messages, completed string
	}{
		{name: "a packet a segment", packets: []packet{stream(asking)[0], back(clears), stream(small)[0], back(acks)},
			types: "1 2 3 4", messages: "1 1 1 1", completed: "- - 1 -"},
		{name: "several packets in a segment",
			packets: []packet{stream(asking)[0], back(clears), stream(slices.Concat(small, asking))[0],
				back(slices.Concat(acks, clears))},
			types: "1 2 3,1 4,2", messages: "1 1 1,2 1,2", completed: "- - 1 -"},
		{name: "a header in pieces", packets: join(stream(asking, 1, 4, 31)), types: "- - - 1", messages: "- - - 1"},
		{name: "the rest of a header, and payload", packets: join(stream(slices.Concat(asking, small, asking), 32+29)),
			want:  map[int]string{2: "unsolicited_data"},
			types: "1 3,1", messages: "1 1,2", completed: "- 1"},
		{name: "payload in pieces",
			packets: join(stream(asking), []packet{back(clears)}, stream(long, 10, 32, 33, 1500, 20031)),
			types:   "1 2 - - - - - 3", messages: "1 1 - - - - - 1", completed: "- - - - - - - 1"},
		{name: "a packet begins behind payload",
			packets: join(stream(slices.Concat(asking, long, sized, asking), 32, 10000, 20032+32+16)),
			want:    map[int]string{3: "unsolicited_data", 4: "retransmitted_packet"}, types: "1 - 3 1,1",
			messages: "1 - 1 2,2", completed: "- - 1 -"},
		{name: "a bad header ends it", packets: stream(slices.Concat(asking, asking[:20], small, small)),
			want: map[int]string{1: "bad_header"}, types: "1,1", messages: "1"},
		{name: "not ZRLMPI", packets: stream([]byte("GET / HTTP/1.1\r\n\r\nand some more")),
			want: map[int]string{1: "bad_header"}, types: "-"},
		{name: "more words than the limit", packets: stream(header(protocol.Data, 0, 1, protocol.SendInt, 1<<26+1)),
			want: map[int]string{1: "bad_header"}, types: "3", messages: "-"},
		{name: "the largest message is waited for",
			packets: stream(header(protocol.Data, 0, 1, protocol.SendInt, 1<<26)), types: "-", messages: "-"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			file := write(t, c.packets...)
			frames := dissect(t, file)
			expectExperts(t, frames, c.want)
			expectFields(t, frames, "zrlmpi.type", c.types)
			expectFields(t, frames, "zrlmpi.message", c.messages)
			expectFields(t, frames, "zrlmpi.data.complete", c.completed)
			if err := differences(frames, dissect(t, file, "-2"), "zrlmpi.ack_in", "zrlmpi.clear_in"); err != nil {
				t.Errorf("two passes make a difference: %v", err)
			}
		})
	}
}

func TestStreamPayload(t *testing.T) {
	t.Parallel()
	p := words(20000)
	long := append(header(protocol.Data, 0, 1, protocol.SendInt, 5000), p...)
	frames := dissect(t, write(t, stream(long, 7000, 14000)...))
	last := frames[2]
	for field, want := range map[string]string{
		"zrlmpi.data.offset": "0", "zrlmpi.data.bytes": "20000", "zrlmpi.data.total": "20000",
		"zrlmpi.data.padding": "0",
		"zrlmpi.data.frame":   "3",
	} {
		if got := last.one(t, field); got != want {
			t.Errorf("%s is %s, want %s", field, got, want)
		}
	}
	if got := last.one(t, "zrlmpi.payload"); len(got) != 40000 {
		t.Errorf("the payload has %d digits", len(got))
	}
	if info := last.one(t, "_ws.col.Info"); !strings.HasPrefix(info, "DATA 0→1 SEND_INT size=5000") {
		t.Errorf("the Info column is %q", info)
	}
}
