package capture_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// recorded reads the units of a capture without using package capture.
func recorded(t testing.TB, name string) []pcapng.Unit {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata/captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	var units []pcapng.Unit
	for n := int64(1); ; n++ {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return units
		}
		if err != nil {
			t.Fatal(err)
		}
		pkt := gopacket.NewPacket(data, r.LinkType(), gopacket.Default)
		ip := pkt.NetworkLayer().(*layers.IPv4)
		udp := pkt.TransportLayer().(*layers.UDP)
		addr := func(ip []byte, port layers.UDPPort) netip.AddrPort {
			a, _ := netip.AddrFromSlice(ip)
			return netip.AddrPortFrom(a.Unmap(), uint16(port))
		}
		units = append(units, pcapng.Unit{
			Packet: n, Time: info.Timestamp, Proto: pcapng.UDP, Data: bytes.Clone(udp.Payload),
			Src: addr(ip.SrcIP.To4(), udp.SrcPort), Dst: addr(ip.DstIP.To4(), udp.DstPort),
		})
	}
}

// renumber sets the packet numbers of modified units.
func renumber(units []pcapng.Unit) []pcapng.Unit {
	for i := range units {
		units[i].Packet = int64(i + 1)
	}
	return units
}

func analyze(units []pcapng.Unit) *capture.Report {
	a := capture.NewAnalysis("test", capture.AnalysisOptions{KeepMessages: 1000, KeepSteps: 100})
	if err := a.Analyze(&unitSource{units: slices.Values(units)}); err != nil {
		panic(err)
	}
	return a.Report()
}

// unitSource is a Source of units.
type unitSource struct {
	units iter.Seq[pcapng.Unit]
	next  func() (pcapng.Unit, bool)
}

func (s *unitSource) Next(u *pcapng.Unit) error {
	if s.next == nil {
		s.next, _ = iter.Pull(s.units)
	}
	next, ok := s.next()
	if *u = next; !ok {
		return io.EOF
	}
	return nil
}

func (s *unitSource) Stats() capture.Stats { return capture.Stats{} }
func (s *unitSource) Close() error         { return nil }

// brief summarizes a message as text: its ranks, words, retransmissions and verdict.
func brief(m capture.Message) string {
	s := fmt.Sprintf("%d→%d %d", m.Src, m.Dst, m.Words)
	if m.Retransmissions > 0 {
		s += fmt.Sprintf(" retransmissions %d", m.Retransmissions)
	}
	if !m.Complete {
		s += " incomplete"
	}
	return s
}

func times(n int, what ...string) (out []string) {
	for range n {
		out = append(out, what...)
	}
	return out
}

func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("testdata/captures/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatal("no captures", err)
	}
	want := map[string]struct {
		messages []string
		findings []capture.FindingKind
	}{
		"fpga_zero_words_padding": {[]string{"1→0 0 retransmissions 4 incomplete"},
			[]capture.FindingKind{capture.StillWaiting}},
		"late_clear_lost_bare_to_fpga": {[]string{"0→1 1001 retransmissions 1"}, []capture.FindingKind{capture.LostPacket}},
		"late_request_copy_deadlock": {[]string{"0→1 1", "1→0 1", "0→1 0 retransmissions 19 incomplete"},
			[]capture.FindingKind{capture.StaleHeader, capture.StillWaiting}},
		"loss_bare_to_cpu_wrong_data": {[]string{"0→1 1001 retransmissions 1", "0→1 5"},
			[]capture.FindingKind{capture.LostPacket}},
		"fpga_fpga_pingpong_347": {messages: times(3, "0→1 347", "1→0 347")},
		"loss_fpga_ack_lost": {[]string{"0→1 100 retransmissions 3 incomplete"},
			[]capture.FindingKind{capture.RetransmissionsExhausted}},
		"loss_fpga_data_lost_multi": {[]string{"1→0 1000 retransmissions 5", "1→0 1000"},
			[]capture.FindingKind{capture.LostPacket}},
		"loss_mid_to_fpga_corrupts": {[]string{"0→1 1000 retransmissions 1", "0→1 1000"},
			[]capture.FindingKind{capture.LostPacket}},
		"mpe_ref_late_start": {[]string{"1→0 5 retransmissions 2", "1→0 5"},
			[]capture.FindingKind{capture.RetransmittedPacket}},
		"ref_mpe_echo_1":       {messages: times(3, "0→1 1", "1→0 1")},
		"ref_mpe_echo_1000":    {messages: times(3, "0→1 1000", "1→0 1000")},
		"ref_mpe_echo_347":     {messages: times(3, "0→1 347", "1→0 347")},
		"ref_mpe_echo_uoe_347": {messages: times(3, "0→1 347", "1→0 347")},
		"ref_mpe_late_recv_call": {append([]string{"0→1 5 retransmissions 1", "1→0 5"},
			times(2, "0→1 5", "1→0 5")...), []capture.FindingKind{capture.RetransmittedPacket}},
		"ref_mpe_late_start": {[]string{"0→1 5 retransmissions 2", "1→0 5", "0→1 5", "1→0 5"},
			[]capture.FindingKind{capture.RetransmittedPacket}},
		"ref_ref_late_recv_call": {[]string{"0→1 5 retransmissions 1", "0→1 5", "0→1 5"},
			[]capture.FindingKind{capture.RetransmittedPacket}},
		"ref_ref_late_recv_stale_sr": {[]string{"0→1 5 retransmissions 1", "0→1 5 retransmissions 1"},
			[]capture.FindingKind{capture.RetransmittedPacket, capture.StaleHeader}},
		"ref_ref_late_start": {[]string{"0→1 5 retransmissions 2", "0→1 5"},
			[]capture.FindingKind{capture.RetransmittedPacket}},
		"ref_ref_pingpong_1":        {messages: times(3, "0→1 1", "1→0 1")},
		"ref_ref_pingpong_1000":     {messages: times(3, "0→1 1000", "1→0 1000")},
		"ref_ref_pingpong_346":      {messages: times(3, "0→1 346", "1→0 346")},
		"ref_ref_pingpong_347":      {messages: times(3, "0→1 347", "1→0 347")},
		"ref_ring3_347":             {messages: times(2, "0→1 347", "1→2 347", "2→0 347")},
		"ring3_cpu0_fpga1_cpu2_347": {messages: times(2, "0→1 347", "1→2 347", "2→0 347")},
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pcap")
		t.Run(name, func(t *testing.T) {
			w, ok := want[name]
			if !ok {
				t.Fatal("this capture is not in the table")
			}
			check(t, analyze(recorded(t, name)), w.messages, w.findings)
		})
	}
}

func check(t *testing.T, r *capture.Report, messages []string, findings []capture.FindingKind) {
	t.Helper()
	var got []string
	for _, m := range r.Messages {
		got = append(got, brief(m))
	}
	if messages != nil && !slices.Equal(got, messages) {
		t.Errorf("messages are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(messages, "\n"))
	}
	var kinds []capture.FindingKind
	for _, f := range r.Findings {
		kinds = append(kinds, f.Kind)
		if len(f.Packets) == 0 || f.Text == "" {
			t.Errorf("an empty finding: %+v", f)
		}
	}
	slices.Sort(kinds)
	slices.Sort(findings)
	if !slices.Equal(kinds, findings) {
		t.Errorf("findings are %v, want %v", kinds, findings)
		for _, f := range r.Findings {
			t.Logf("%s %v: %s", f.Kind, f.Packets, f.Text)
		}
	}
}

// drop, double and change modify a capture at packet n, counted from 1.
func drop(units []pcapng.Unit, n ...int) []pcapng.Unit {
	var out []pcapng.Unit
	for i, u := range units {
		if !slices.Contains(n, i+1) {
			out = append(out, u)
		}
	}
	return renumber(out)
}

func double(units []pcapng.Unit, n int, later time.Duration) []pcapng.Unit {
	c := units[n-1]
	c.Time = c.Time.Add(later)
	at := n
	for at < len(units) && units[at].Time.Before(c.Time) {
		at++
	}
	return renumber(slices.Insert(slices.Clone(units), at, c))
}

func change(units []pcapng.Unit, n int, edit func(u *pcapng.Unit)) []pcapng.Unit {
	out := slices.Clone(units)
	out[n-1].Data = bytes.Clone(out[n-1].Data)
	edit(&out[n-1])
	return renumber(out)
}

// packet returns a unit with a handshake packet between ranks at 127.0.0.(rank+1).
func packet(at time.Duration, typ protocol.Type, call protocol.Call, src, dst int, payload ...byte) pcapng.Unit {
	addr := func(r int) netip.AddrPort {
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(r + 1)}), protocol.Port)
	}
	h := protocol.Header{Src: uint32(src), Dst: uint32(dst), Call: call, Type: typ, Size: uint32(len(payload) / 4)}
	return pcapng.Unit{
		Time: time.Unix(1700000000, 0).Add(at), Proto: pcapng.UDP, Src: addr(src), Dst: addr(dst),
		Data: append(protocol.CloudFPGA.Append(nil, h), payload...),
	}
}

const ms = time.Millisecond

// whole returns a complete message of one word.
func whole(at time.Duration, src, dst int) []pcapng.Unit {
	return []pcapng.Unit{
		packet(at, protocol.SendRequest, protocol.SendInt, src, dst),
		packet(at+1*ms, protocol.ClearToSend, protocol.RecvInt, dst, src),
		packet(at+2*ms, protocol.Data, protocol.SendInt, src, dst, 1, 2, 3, 4),
		packet(at+3*ms, protocol.Ack, protocol.RecvInt, dst, src),
	}
}

// TestFindings modifies valid recordings. Each modification must yield exactly one finding, of the expected kind.
func TestFindings(t *testing.T) {
	one := recorded(t, "ref_ref_pingpong_1")    // SR CTS DATA ACK, and back, three times
	cut := recorded(t, "ref_ref_pingpong_1000") // SR CTS DATA data data ACK …
	tail := recorded(t, "ref_ref_pingpong_347") // SR CTS DATA data ACK …
	echo := recorded(t, "ref_mpe_echo_1")       // the FPGA pads
	late := recorded(t, "ref_ref_late_start")   // SR SR SR CTS …
	lost := recorded(t, "loss_fpga_ack_lost")   // SR CTS DATA DATA DATA DATA
	swap := func(units []pcapng.Unit, n int) []pcapng.Unit {
		out := slices.Clone(units)
		out[n-1], out[n] = out[n], out[n-1]
		out[n-1].Time, out[n].Time = out[n].Time, out[n-1].Time
		return renumber(out)
	}
	for _, c := range []struct {
		name    string
		units   []pcapng.Unit
		want    []capture.FindingKind
		text    string
		packets []int64
	}{
		{"SEND_REQUEST lost", drop(one, 5), []capture.FindingKind{capture.LostPacket},
			"message 2 from rank 1 to rank 0: SEND_REQUEST was lost, or is not in the recording", []int64{6}},
		{"CLEAR_TO_SEND lost", drop(one, 6), []capture.FindingKind{capture.LostPacket}, "CLEAR_TO_SEND was lost", []int64{5}},
		{"DATA lost", drop(one, 7), []capture.FindingKind{capture.LostPacket}, "DATA was lost", nil},
		{"ACK lost", drop(one, 4), []capture.FindingKind{capture.LostPacket}, "ACK was lost", nil},
		{"first datagram lost", drop(cut, 3), []capture.FindingKind{capture.LostPacket}, "DATA was lost", nil},
		{"middle datagram lost", drop(cut, 4), []capture.FindingKind{capture.LostPacket}, "a datagram of DATA was lost", nil},
		{"last datagram lost", drop(cut, 5), []capture.FindingKind{capture.LostPacket}, "a datagram of DATA was lost", nil},
		{"retransmitted", late, []capture.FindingKind{capture.RetransmittedPacket}, "2 packets were retransmitted",
			[]int64{1, 2, 3}},
		{"SEND_REQUEST twice", double(one, 1, 10*time.Microsecond), []capture.FindingKind{capture.DuplicatePacket},
			"SEND_REQUEST 0→1 SEND_INT arrived twice", []int64{2}},
		{"CLEAR_TO_SEND twice", double(one, 2, 10*time.Microsecond), []capture.FindingKind{capture.DuplicatePacket},
			"CLEAR_TO_SEND", []int64{3}},
		{"DATA twice", double(one, 3, time.Microsecond), []capture.FindingKind{capture.DuplicatePacket}, "DATA", []int64{4}},
		{"ACK twice", double(one, 4, time.Microsecond), []capture.FindingKind{capture.DuplicatePacket}, "ACK", []int64{5}},
		{"continuation datagram twice", double(cut, 4, 0), []capture.FindingKind{capture.DuplicatePacket},
			"the network delivered a datagram", []int64{5}},
		{"stale CLEAR_TO_SEND", renumber(append(whole(0, 0, 1),
			packet(200*ms, protocol.ClearToSend, protocol.RecvInt, 1, 0))), []capture.FindingKind{capture.StaleHeader},
			"rank 1 sent CLEAR_TO_SEND to rank 0, which had not asked", []int64{5}},
		{"stale ACK", renumber(append(whole(0, 0, 1), packet(200*ms, protocol.Ack, protocol.RecvInt, 1, 0))),
			[]capture.FindingKind{capture.StaleHeader}, "ACK", []int64{5}},
		{"wrong source", change(one, 6, func(u *pcapng.Unit) { u.Src = netip.MustParseAddrPort("127.0.0.9:2718") }),
			[]capture.FindingKind{capture.WrongSource}, "came from 127.0.0.9:2718, but rank 0 is at 127.0.0.1:2718",
			[]int64{6}},
		{"INT against FLOAT", change(one, 2, func(u *pcapng.Unit) { u.Data[16] = byte(protocol.RecvFloat) }),
			[]capture.FindingKind{capture.DatatypeMismatch}, "sends with SEND_INT, but CLEAR_TO_SEND says RECV_FLOAT",
			[]int64{1, 2}},
		{"tag", change(one, 1, func(u *pcapng.Unit) { u.Data[18] = 7 }), []capture.FindingKind{capture.ReservedByte},
			"silently; in profile v0.9 it is the tag: analyze with --profile v0.9", []int64{1}},
		{"reserved byte", change(one, 1, func(u *pcapng.Unit) { u.Data[20] = 7 }),
			[]capture.FindingKind{capture.ReservedByte},
			"byte 20 of the header is 0x07", []int64{1}},
		{"bad type", renumber(append(slices.Clone(one), func() pcapng.Unit {
			u := packet(0, 9, protocol.SendInt, 0, 1)
			u.Time = one[len(one)-1].Time.Add(ms)
			return u
		}())), []capture.FindingKind{capture.BadHeader}, "byte 17 is 0x09", []int64{25}},
		{"padding", change(one, 3, func(u *pcapng.Unit) { u.Data = append(u.Data, 0, 0, 0, 0) }),
			[]capture.FindingKind{capture.MixedPadding}, "rank 0 pads some", nil},
		{"size too large", change(one, 3, func(u *pcapng.Unit) { u.Data[12] = 2 }),
			[]capture.FindingKind{capture.SizeMismatch}, "announces 2 words, 8 bytes, but its datagram carries 4", []int64{3}},
		{"size too small", change(tail, 3, func(u *pcapng.Unit) { u.Data[12], u.Data[13] = 90, 1 }),
			[]capture.FindingKind{capture.SizeMismatch}, "", nil},
		{"crossed requests", renumber(append([]pcapng.Unit{
			packet(0, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(1*ms, protocol.SendRequest, protocol.SendInt, 1, 0),
			packet(2*ms, protocol.ClearToSend, protocol.RecvInt, 0, 1),
			packet(3*ms, protocol.Data, protocol.SendInt, 1, 0, 1, 2, 3, 4),
			packet(4*ms, protocol.Ack, protocol.RecvInt, 0, 1),
		}, whole(5*ms, 0, 1)[0:4]...)), []capture.FindingKind{capture.CrossedRequests}, "ranks 0 and 1 both asked to send",
			[]int64{1, 2}},
		{"retransmissions exhausted", lost, []capture.FindingKind{capture.RetransmissionsExhausted}, " for ACK from rank 1",
			[]int64{1, 4, 5, 6}},
		{"never cleared", late[:3], []capture.FindingKind{capture.NeverCleared},
			"rank 0 has waited 1.22s for CLEAR_TO_SEND from rank 1", []int64{1, 2, 3}},
		{"waits for DATA", one[:6], []capture.FindingKind{capture.StillWaiting}, " for DATA from rank 1", []int64{5}},
		{"wedged by a second ACK", renumber(append(append(whole(0, 1, 0), // rank 1, the FPGA, sends
			packet(30*ms, protocol.Ack, protocol.RecvInt, 0, 1)), // and gets two ACKs
			packet(100*ms, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(200*ms, protocol.SendRequest, protocol.SendInt, 0, 1))),
			[]capture.FindingKind{capture.Wedged}, "swallowed the SEND_REQUEST (trap 2)", []int64{5, 6, 7}},
		{"another call after one that was never cleared", renumber([]pcapng.Unit{
			packet(0, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(100*ms, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(1200*ms, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(3300*ms, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(15200*ms, protocol.SendRequest, protocol.SendInt, 0, 1), // within three times 4 s
			packet(30000*ms, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(30001*ms, protocol.ClearToSend, protocol.RecvInt, 1, 0),
		}), []capture.FindingKind{capture.NeverCleared, capture.StillWaiting},
			"sent 5 times within 15.2s, and then not for 14.8s",
			[]int64{1, 2, 3, 4, 5}},
		{"deadlock of two", renumber([]pcapng.Unit{
			packet(0, protocol.SendRequest, protocol.SendInt, 0, 1),
			packet(1*ms, protocol.SendRequest, protocol.SendInt, 2, 0),
			packet(2*ms, protocol.SendRequest, protocol.SendInt, 1, 2),
			packet(12400*ms, protocol.SendRequest, protocol.SendInt, 1, 2),
		}), []capture.FindingKind{capture.Deadlock}, "rank 0 has waited 12.4s for CLEAR_TO_SEND from rank 1; rank 1 has " +
			"waited 12.4s for CLEAR_TO_SEND from rank 2; rank 2 has waited 12.4s for CLEAR_TO_SEND from rank 0",
			[]int64{1, 3, 2}},
		{"swapped datagrams of other lengths", swap(cut, 4), []capture.FindingKind{capture.LostPacket}, "", nil},
		{"nothing", echo, nil, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := analyze(c.units)
			check(t, r, nil, c.want)
			if len(r.Findings) > 0 &&
				(!strings.Contains(r.Findings[0].Text, c.text) ||
					c.packets != nil && !slices.Equal(r.Findings[0].Packets, c.packets)) {
				t.Errorf("says %v %q, want %v %q", r.Findings[0].Packets, r.Findings[0].Text, c.packets, c.text)
			}
			for _, f := range r.Findings {
				var texts []string
				for _, w := range f.Waits {
					age := handshake.Round(r.Start.Add(time.Duration(r.Summary.Seconds * float64(time.Second))).Sub(w.Since))
					text := fmt.Sprintf("rank %d has waited %v for %s from rank %d", w.Rank, age, w.PacketType, w.Peer)
					if age < 100*time.Millisecond {
						text = fmt.Sprintf("the recording ends here: rank %d waits for %s from rank %d", w.Rank, w.PacketType,
							w.Peer)
					}
					texts = append(texts, text)
				}
				if !strings.HasPrefix(f.Text, strings.Join(texts, "; ")) ||
					len(texts) == 0 && strings.Contains(f.Text, "has waited") {
					t.Errorf("waits %q, but says %q", texts, f.Text)
				}
			}
		})
	}
}

func TestSegmentationOffload(t *testing.T) {
	// A recording made on the sender's machine may show a fragmented message as one packet.
	units := recorded(t, "ref_ref_pingpong_1000") // SR CTS DATA data data ACK …
	var merged []pcapng.Unit
	for _, u := range units {
		if last := len(merged) - 1; last >= 0 && len(u.Data) > protocol.HeaderLen &&
			len(merged[last].Data) > protocol.HeaderLen {
			merged[last].Data = append(bytes.Clone(merged[last].Data), u.Data...)
			continue
		}
		merged = append(merged, u)
	}
	if len(merged) != 24 {
		t.Fatalf("%d packets", len(merged))
	}
	check(t, analyze(renumber(merged)), times(3, "0→1 1000", "1→0 1000"), nil)
}
