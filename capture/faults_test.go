package capture_test

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestFaults: recordings with a known fault yield the expected findings and no others.
func TestFaults(t *testing.T) {
	for name, want := range map[string][]struct {
		kind     capture.FindingKind
		text     string
		possible string // a possible cause, and the first rank that it names
	}{
		"ack_lost_behind": {
			{capture.LostPacket, "ACK was lost, or is not in the recording", ""},
			{capture.NeverCleared, "one of the two directions between them is broken", "packets_blocked 1"},
		},
		"big_datagrams_lost": {
			{capture.StillWaiting, "so DATA, which is in the recording, does not reach it as a whole, or it drops it; " +
				"of the datagrams to it, up to 52 bytes were acknowledged, and these have up to 1416: the path may " +
				"carry less", "path_mtu 0"},
		},
		"clear_lost_before": {{capture.NeverCleared, "one of the two directions between them is broken",
			"packets_blocked 1"}},
		"clear_lost_behind": {{capture.StillWaiting,
			"rank 1 sends SEND_REQUEST again, so CLEAR_TO_SEND, which is in the recording, does not reach it",
			"lost_packet 0"}},
		"fragmented": {
			{capture.FragmentedPacket, "a datagram of 1416 bytes from rank 0 to rank 2 came in 2 IP fragments of at most " +
				"976 bytes",
				""},
			{capture.FragmentedPacket, "from rank 2 to rank 0", ""},
		},
		"ranks_swapped": {
			{capture.WrongDestination,
				"packets to 127.0.0.4:2718 are for rank 2, and those from 127.0.0.4:2718 are of rank 3",
				""},
			{capture.NeverCleared, "the node at 127.0.0.4:2718 identifies itself as rank 3", "wrong_address 2"},
		},
		"ranks_swapped_extended": {
			{capture.WrongDestination,
				"packets to 127.0.0.2:2718 are for rank 2, and those from 127.0.0.2:2718 are of rank 1",
				""},
			{capture.StillWaiting, "10 HELLOs from rank 0 to rank 1 within 4.43s, unanswered in this recording",
				"wrong_address 1"},
		},
		"request_copied_late": {{capture.DuplicatePacket, "SEND_REQUEST 1→0 SEND_INT arrived twice", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			source, err := capture.Options{}.OpenFile(filepath.Join("testdata/faults", name+".pcap"))
			if err != nil {
				t.Fatal(err)
			}
			defer source.Close()
			a := capture.NewAnalysis(name, capture.AnalysisOptions{})
			if err := a.Analyze(source); err != nil {
				t.Fatal(err)
			}
			found := a.Report().Findings
			for i, f := range found {
				if i >= len(want) || f.Kind != want[i].kind || !strings.Contains(f.Text, want[i].text) {
					t.Errorf("%s: %s", f.Kind, f.Text)
					continue
				}
				var possible []string
				for _, p := range f.Possible {
					possible = append(possible, fmt.Sprint(p.Cause, " ", p.Rank))
				}
				if cause := want[i].possible; cause == "" && possible != nil ||
					cause != "" && !slices.Contains(possible, cause) {
					t.Errorf("%s: possible are %q", f.Kind, possible)
				}
			}
			if len(found) < len(want) {
				t.Errorf("%d findings, want %d", len(found), len(want))
			}
		})
	}
}

// TestPossibleCauses: the possible causes of a wait are the ones that the recording does not rule out.
func TestPossibleCauses(t *testing.T) {
	const request, clear, data, ack = protocol.SendRequest, protocol.ClearToSend, protocol.Data, protocol.Ack
	rank0, rank1 := netip.MustParseAddrPort("127.0.0.1:2718"), netip.MustParseAddrPort("127.0.0.2:2718")
	for _, tt := range []struct {
		name    string
		every   time.Duration
		packets []protocol.Type
		want    []string // a cause, and the rank that it names first
	}{
		{"SEND_REQUEST has crossed CLEAR_TO_SEND", 300 * time.Millisecond, []protocol.Type{request, clear, request},
			[]string{"lost_packet 0", "lost_packet 1"}},
		{"no packet from rank 1, which may be of any kind", time.Second, []protocol.Type{request},
			[]string{"process_ended 1", "wrong_profile 1", "restarted 0", "wrong_address 1"}},
		{"the length is not known", time.Second, []protocol.Type{request, clear},
			[]string{"path_mtu 0", "lost_packet 0", "process_ended 0"}},
		{"rank 1 may be in the second message", time.Second,
			[]protocol.Type{request, clear, data, ack, request, clear, data, request},
			[]string{"program_computes 1", "restarted 0", "restarted 1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var units []pcapng.Unit
			for i, typ := range append(tt.packets, 0) { // a packet of other ranks, later
				h := protocol.Header{Type: typ, Call: protocol.SendInt, Dst: 1}
				from, to := rank0, rank1
				if typ == clear || typ == ack {
					h.Call, h.Src, h.Dst, from, to = protocol.RecvInt, 1, 0, rank1, rank0
				}
				at := time.Duration(i) * tt.every
				if typ == 0 {
					h.Type, h.Src, from, at = request, 2, netip.MustParseAddrPort("127.0.0.3:2718"), time.Minute
				}
				units = append(units, pcapng.Unit{Packet: int64(i + 1), Time: time.Unix(1e9, 0).Add(at), Src: from,
					Dst:   to,
					Proto: pcapng.UDP, Data: protocol.CloudFPGA.Append(nil, h)})
			}
			var possible []string
			for _, f := range analyze(units).Findings {
				for _, p := range f.Possible {
					possible = append(possible, fmt.Sprint(p.Cause, " ", p.Rank))
				}
			}
			for _, cause := range tt.want {
				if !slices.Contains(possible, cause) {
					t.Errorf("%s is not in %q", cause, possible)
				}
			}
		})
	}
}

// TestLateRequest: a SEND_REQUEST that soon follows DATA is either a late copy or, if the ACK was not recorded, the
// beginning of the next message. The next packet decides.
func TestLateRequest(t *testing.T) {
	const (
		ms    = time.Millisecond
		other = protocol.Type(99) // DATA with another payload
	)
	start := time.Unix(1e9, 0)
	rank0, rank1 := netip.MustParseAddrPort("127.0.0.1:2718"), netip.MustParseAddrPort("127.0.0.2:2718")
	type sent struct {
		at  time.Duration
		typ protocol.Type
	}
	for _, tt := range []struct {
		name     string
		packets  []sent
		messages []string
		findings []capture.FindingKind
	}{
		{"a copy, and the ACK", []sent{
			{0, protocol.SendRequest}, {1 * ms, protocol.ClearToSend}, {2 * ms, protocol.Data},
			{5 * ms, protocol.SendRequest}, {6 * ms, protocol.Ack},
		}, []string{"0→1 2"}, []capture.FindingKind{capture.DuplicatePacket}},
		{"two copies", []sent{
			{0, protocol.SendRequest}, {1 * ms, protocol.ClearToSend}, {2 * ms, protocol.Data},
			{5 * ms, protocol.SendRequest},
			{6 * ms, protocol.SendRequest}, {7 * ms, protocol.Ack},
		}, []string{"0→1 2"}, []capture.FindingKind{capture.DuplicatePacket}},
		{"a copy, and DATA that was lost", []sent{
			{0, protocol.SendRequest}, {1 * ms, protocol.ClearToSend}, {2 * ms, protocol.Data},
			{5 * ms, protocol.SendRequest},
			{200 * ms, protocol.Data}, {201 * ms, protocol.Ack},
		}, []string{"0→1 2 retransmissions 1"}, []capture.FindingKind{capture.DuplicatePacket, capture.LostPacket}},
		{"the next message, its CLEAR_TO_SEND late and not recorded", []sent{
			{0, protocol.SendRequest}, {1 * ms, protocol.ClearToSend}, {2 * ms, protocol.Data},
			{5 * ms, protocol.SendRequest},
			{200 * ms, other}, {201 * ms, protocol.Ack},
		}, []string{"0→1 2 incomplete", "0→1 2"}, []capture.FindingKind{capture.LostPacket, capture.LostPacket}},
		{"the next message", []sent{
			{0, protocol.SendRequest}, {1 * ms, protocol.ClearToSend}, {2 * ms, protocol.Data},
			{5 * ms, protocol.SendRequest},
			{6 * ms, protocol.ClearToSend}, {7 * ms, protocol.Data}, {8 * ms, protocol.Ack},
		}, []string{"0→1 2 incomplete", "0→1 2"}, []capture.FindingKind{capture.LostPacket}},
		{"one direction", []sent{
			{0, protocol.SendRequest}, {2 * ms, protocol.Data}, {5 * ms, protocol.SendRequest}, {7 * ms, protocol.Data},
		}, []string{"0→1 2 incomplete", "0→1 2 incomplete"}, []capture.FindingKind{capture.LostPacket,
			capture.StillWaiting}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var units []pcapng.Unit
			for i, p := range tt.packets {
				h := protocol.Header{Type: p.typ, Call: protocol.SendInt, Dst: 1}
				from, to := rank0, rank1
				if p.typ == protocol.ClearToSend || p.typ == protocol.Ack {
					h.Call, h.Src, h.Dst, from, to = protocol.RecvInt, 1, 0, rank1, rank0
				}
				var payload []byte
				switch p.typ {
				case protocol.Data:
					h.Size, payload = 2, []byte("8 bytes.")
				case other:
					h.Type, h.Size, payload = protocol.Data, 2, []byte("8 other.")
				}
				b := protocol.CloudFPGA.Append(nil, h)
				units = append(units, pcapng.Unit{
					Packet: int64(i + 1), Time: start.Add(p.at), Src: from, Dst: to, Proto: pcapng.UDP,
					Data: append(b, payload...),
				})
			}
			check(t, analyze(units), tt.messages, tt.findings)
		})
	}
}

// TestAnotherRank: an ACK from a rank or address other than the peer's is not part of the message.
func TestAnotherRank(t *testing.T) {
	start := time.Unix(1e9, 0)
	rank0, rank1 := netip.MustParseAddrPort("127.0.0.1:2718"), netip.MustParseAddrPort("127.0.0.2:2718")
	unit := func(i int, from, to netip.AddrPort, h protocol.Header) pcapng.Unit {
		return pcapng.Unit{
			Packet: int64(i), Time: start.Add(time.Duration(i) * time.Millisecond), Src: from, Dst: to,
			Proto: pcapng.UDP,
			Data:  append(protocol.CloudFPGA.Append(nil, h), make([]byte, 4*h.Size)...),
		}
	}
	request := protocol.Header{Type: protocol.SendRequest, Call: protocol.SendInt, Dst: 1}
	data := protocol.Header{Type: protocol.Data, Call: protocol.SendInt, Dst: 1, Size: 2}
	clear := protocol.Header{Type: protocol.ClearToSend, Call: protocol.RecvInt, Src: 1}
	ack := protocol.Header{Type: protocol.Ack, Call: protocol.RecvInt, Src: 5}
	check(t, analyze([]pcapng.Unit{
		unit(1, rank0, rank1, request), unit(2, rank1, rank0, clear), unit(3, rank0, rank1, data),
		unit(4, rank1, rank0, ack),
	}), []string{"0→1 2 incomplete"}, []capture.FindingKind{capture.WrongSource, capture.StillWaiting})

	// The peer sends before it receives.
	request.Dst = 3
	check(t, analyze([]pcapng.Unit{
		unit(1, rank1, rank0, protocol.Header{Type: protocol.SendRequest, Call: protocol.SendInt, Src: 1}),
		unit(2, rank0, rank1, request),
	}), nil, []capture.FindingKind{capture.WrongDestination, capture.CrossedRequests, capture.StillWaiting,
		capture.StillWaiting})
}
