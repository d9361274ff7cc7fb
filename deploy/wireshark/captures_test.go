package wireshark_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// The tests in this file compare the dissection of captures of the deployed stack with protocol.Parse and byte counts.

// recorded is a packet of a capture.
type recorded struct {
	info gopacket.CaptureInfo
	data []byte
}

// read returns the packets of an Ethernet capture.
func read(t *testing.T, file string) (packets []recorded) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for {
		data, info, err := r.ReadPacketData()
		if err != nil {
			return packets
		}
		packets = append(packets, recorded{info, data})
	}
}

// payload returns the addresses and the payload of a UDP packet.
func (r recorded) payload(t *testing.T) (src, dst string, b []byte) {
	t.Helper()
	p := gopacket.NewPacket(r.data, layers.LayerTypeEthernet, gopacket.DecodeOptions{NoCopy: true})
	u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
	if !ok {
		t.Fatal("not a UDP packet")
	}
	return p.NetworkLayer().NetworkFlow().Src().String(), p.NetworkLayer().NetworkFlow().Dst().String(), u.Payload
}

// reference computes the expected fields for captures without corrupt packets. It ignores times.
type reference struct {
	messages int
	current  map[string]*referenceMessage // by source and destination
}

type referenceMessage struct {
	id, request, clear, data int
	header                   protocol.Header
	first                    []byte
	got                      int
	acked                    bool
}

// packet returns the fields that the dissector must show for a packet.
func (r *reference) packet(number int, src, dst string, b []byte) frame {
	m := r.current[src+dst]
	h, err := protocol.CloudFPGA.Decode(b)
	left := 0
	if m != nil && m.data > 0 {
		left = int(m.header.Size)*protocol.WordLen - m.got
	}
	f := frame{}
	set := func(name string, value any) { f["zrlmpi."+name] = []string{fmt.Sprint(value)} }
	if err != nil || left > 0 && (len(b) != protocol.HeaderLen || left == protocol.HeaderLen) &&
		(h.Type != protocol.Data || !bytes.Equal(b[protocol.HeaderLen:], m.first)) {
		set("payload", hex.EncodeToString(b[:min(len(b), max(left, 0))]))
		if left <= 0 { // its DATA is not in the recording
			set("payload", hex.EncodeToString(b))
			set("message", m.id)
			return f
		}
		set("src_rank", m.header.Src)
		set("dst_rank", m.header.Dst)
		r.take(m, set, b, left)
		return f
	}
	for name, value := range map[string][]byte{"mark.start": b[:4], "reserved": b[19:28], "mark.end": b[28:32]} {
		set(name, hex.EncodeToString(value))
	}
	set("dst_rank", h.Dst)
	set("src_rank", h.Src)
	set("size", h.Size)
	set("call", uint8(h.Call))
	set("type", uint8(h.Type))
	set("tag", h.Tag)
	switch h.Type {
	case protocol.SendRequest:
		if m == nil || m.acked {
			r.messages++
			m = &referenceMessage{id: r.messages, request: number}
			r.current[src+dst] = m
		} else {
			set("request_in", m.request)
		}
	case protocol.ClearToSend:
		if m = r.current[dst+src]; m.acked {
			// This CLEAR_TO_SEND answers no request so far, but it may clear the next message.
			r.current[dst+src] = &referenceMessage{acked: true, clear: number}
			return f
		}
		m.clear = number
		set("request_in", m.request)
	case protocol.Data:
		m.header, m.data, m.first, m.got = h, number, bytes.Clone(b[protocol.HeaderLen:]), 0
		set("request_in", m.request)
		if m.clear != 0 {
			set("clear_in", m.clear)
		}
		if len(m.first) > 0 {
			set("payload", hex.EncodeToString(m.first[:min(len(m.first), int(h.Size)*protocol.WordLen)]))
		}
		r.take(m, set, m.first, int(h.Size)*protocol.WordLen)
	case protocol.Ack:
		m = r.current[dst+src]
		m.acked = true
		set("request_in", m.request)
		set("data.frame", m.data)
	}
	set("message", m.id)
	return f
}

func (r *reference) take(m *referenceMessage, set func(string, any), b []byte, left int) {
	n := min(len(b), left)
	set("data.offset", m.got)
	set("data.bytes", n)
	set("data.padding", len(b)-n)
	set("data.total", m.header.Size*protocol.WordLen)
	set("data.frame", m.data)
	set("message", m.id)
	m.got += n
	set("data.complete", map[bool]int{true: 1}[n == left])
}

// notReferred lists recordings that the reference does not support, because datagrams do not fit or the beginning of a
// message is missing. TestDecodeSaysTheSame covers them.
var notReferred = []string{"loss_bare_to_cpu_wrong_data.pcap", "late_clear_lost_bare_to_fpga.pcap",
	"fpga_zero_words_padding.pcap"}

func TestCaptures(t *testing.T) {
	t.Parallel()
	for _, file := range captures(t) {
		if slices.Contains(notReferred, filepath.Base(file)) {
			continue
		}
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			frames := dissect(t, file)
			packets := read(t, file)
			if len(frames) != len(packets) {
				t.Fatalf("%d frames of %d packets", len(frames), len(packets))
			}
			ref := reference{current: map[string]*referenceMessage{}}
			for i, p := range packets {
				src, dst, b := p.payload(t)
				want := ref.packet(i+1, src, dst, b)
				for _, field := range fields {
					switch field {
					case "zrlmpi.ack_in", "zrlmpi.time_clear", "zrlmpi.time_data", "zrlmpi.time_ack":
						continue // see TestLinksAndTimes
					case "zrlmpi.clear_in":
						if ref.current[src+dst] != nil && want.one(t, "zrlmpi.clear_in") == "" {
							continue // a CLEAR_TO_SEND before its message
						}
					}
					if got, want := frames[i].one(t, field), want.one(t, field); got != want {
						t.Errorf("frame %d: %s is %q, want %q", i+1, field, got, want)
					}
				}
				if frames[i].one(t, "_ws.col.Protocol") != "ZRLMPI" {
					t.Errorf("frame %d is %v", i+1, frames[i])
				}
			}
		})
	}
}

func TestInfoColumn(t *testing.T) {
	t.Parallel()
	frames := dissect(t, "../../capture/testdata/captures/ref_mpe_echo_1000.pcap")
	for n, want := range map[int]string{
		1: "SEND_REQUEST 0→1 SEND_INT",
		2: "CLEAR_TO_SEND 1→0 RECV_INT",
		3: "DATA 0→1 SEND_INT size=1000",
		4: "DATA continued 0→1, bytes 1384–2799 of 4000 [frame 3]",
		5: "DATA continued 0→1, bytes 2800–3999 of 4000 [frame 3]",
		6: "ACK 1→0 RECV_INT",
	} {
		if got := frames[n-1].one(t, "_ws.col.Info"); got != want {
			t.Errorf("frame %d: %q, want %q", n, got, want)
		}
	}
}

// The expert infos of each capture match the recording's description.
func TestExpertsOfCaptures(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]map[int]string{
		"loss_fpga_ack_lost": {4: "retransmitted_packet", 5: "retransmitted_packet", 6: "retransmitted_packet"},
		"loss_fpga_data_lost_multi": {2: "retransmitted_packet", 3: "retransmitted_packet", 5: "unexpected_payload",
			6: "unexpected_payload", 7: "retransmitted_packet", 8: "retransmitted_packet", 9: "retransmitted_packet"},
		"loss_mid_to_fpga_corrupts": {6: "retransmitted_packet"},
		"ref_mpe_late_start": {2: "retransmitted_packet", 3: "retransmitted_packet", 9: "padding",
			17: "padding"},
		"ref_ref_late_recv_stale_sr": {2: "retransmitted_packet", 6: "stale_header", 7: "stale_header"},
		"ref_mpe_echo_uoe_347":       {9: "padding", 19: "padding", 29: "padding"},
		"ref_mpe_echo_347":           {8: "padding", 17: "padding", 26: "padding"},
		"ref_ref_pingpong_1000":      {},
		"ref_ring3_347":              {},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			expectExperts(t, dissect(t, "../../capture/testdata/captures/"+file+".pcap"), want)
		})
	}
}

// In its second pass the dissector knows later packets. It derives times from the packets' time stamps.
func TestLinksAndTimes(t *testing.T) {
	t.Parallel()
	for _, file := range captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			first, second := dissect(t, file), dissect(t, file, "-2")
			if err := differences(first, second, "zrlmpi.ack_in", "zrlmpi.clear_in"); err != nil {
				t.Errorf("two passes make a difference: %v", err)
			}
			packets := read(t, file)
			times := 0
			for i, f := range second {
				for field, since := range map[string]string{"zrlmpi.time_clear": "zrlmpi.request_in",
					"zrlmpi.time_data": "zrlmpi.clear_in"} {
					value := f.one(t, field)
					if value == "" {
						continue
					}
					times++
					from, _ := strconv.Atoi(f.one(t, since))
					elapsed := packets[i].info.Timestamp.Sub(packets[from-1].info.Timestamp)
					if want := fmt.Sprintf("%.9f", elapsed.Seconds()); value != want {
						t.Errorf("frame %d: %s is %s, want %s", i+1, field, value, want)
					}
				}
				if value := f.one(t, "zrlmpi.time_ack"); value != "" {
					times++
					number := f.one(t, "zrlmpi.message")
					var end int
					for k := range i {
						if second[k].one(t, "zrlmpi.data.complete") == "1" &&
							second[k].one(t, "zrlmpi.message") == number {
							end = k
						}
						links := second[k].one(t, "zrlmpi.ack_in") != "" && second[k].one(t, "zrlmpi.message") == number
						if offset := second[k].one(t, "zrlmpi.data.offset"); offset == "0" &&
							second[k].one(t, "zrlmpi.message") == number && !links {
							t.Errorf("frame %d does not link to the ACK in frame %d", k+1, i+1)
						}
					}
					elapsed := packets[i].info.Timestamp.Sub(packets[end].info.Timestamp)
					if want := fmt.Sprintf("%.9f", elapsed.Seconds()); value != want {
						t.Errorf("frame %d: time_ack is %s, want %s", i+1, value, want)
					}
				}
			}
			if times < 2 {
				t.Errorf("only %d times are shown", times)
			}
		})
	}
}
