package mpe_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// The tests in this file replay recorded traffic of deployed nodes, with our engine in place of each side in turn. The
// engine gets the other side's packets at their recorded times. It must send its side's recorded packets, byte for byte
// and in order.

// datagram is a recorded packet.
type datagram struct {
	at       time.Duration
	src, dst int // ranks
	b        []byte
}

func (d datagram) String() string {
	what := fmt.Sprintf("%d bytes of payload %x", len(d.b), d.b[:min(8, len(d.b))])
	if h, defect := protocol.CloudFPGA.Parse(d.b); defect.OK() {
		what = fmt.Sprintf("%v (%d bytes)", h, len(d.b))
	}
	return fmt.Sprintf("%d→%d %s", d.src, d.dst, what)
}

// readCapture reads a recording; rank n has the address 127.0.0.(n+1).
func readCapture(t *testing.T, path string) []datagram {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, err := pcapgo.NewReader(f)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var out []datagram
	var start time.Time
	for {
		data, info, err := r.ReadPacketData()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatalf("%s: packet %d: %v", path, len(out), err)
		}
		if start.IsZero() {
			start = info.Timestamp
		}
		pkt := gopacket.NewPacket(data, r.LinkType(), gopacket.DecodeOptions{NoCopy: true})
		ip, _ := pkt.NetworkLayer().(*layers.IPv4)
		udp, _ := pkt.TransportLayer().(*layers.UDP)
		if ip == nil || udp == nil {
			t.Fatalf("%s: packet %d is not UDP over IPv4", path, len(out))
		}
		out = append(out, datagram{
			at: info.Timestamp.Sub(start), src: int(ip.SrcIP.To4()[3]) - 1, dst: int(ip.DstIP.To4()[3]) - 1,
			b: bytes.Clone(udp.Payload),
		})
	}
}

// step is a blocking call of a rank's program.
type step struct {
	at      time.Duration // time of the call
	send    bool
	peer    int
	payload []byte // of a send; for a receive, the expected payload
}

// program infers a rank's calls from its packets: a send begins with its first SEND_REQUEST, a receive with
// its first CLEAR_TO_SEND.
func program(t *testing.T, packets []datagram, rank int) []step {
	t.Helper()
	type open struct {
		step
		requested, cleared bool
		words              int
		hasData            bool
	}
	var steps []step
	pairs := map[[2]int]*open{}
	finish := func(key [2]int) {
		o := pairs[key]
		if o == nil {
			return
		}
		delete(pairs, key)
		if o.send = key[0] == rank; o.send {
			o.peer = key[1]
		} else {
			o.peer = key[0]
		}
		if (key[0] == rank || key[1] == rank) && (o.send || o.cleared) {
			o.payload = o.payload[:min(len(o.payload), o.words*4)]
			steps = append(steps, o.step)
		}
	}
	get := func(key [2]int) *open {
		if pairs[key] == nil {
			pairs[key] = &open{}
		}
		return pairs[key]
	}
	for _, p := range packets {
		h, defect := protocol.CloudFPGA.Parse(p.b)
		out := [2]int{p.src, p.dst} // the message has the direction of this packet
		back := [2]int{p.dst, p.src}
		switch {
		case !defect.OK() || pairs[out] != nil && pairs[out].hasData && len(pairs[out].payload) < pairs[out].words*4 &&
			h.Type != protocol.Data:
			if o := pairs[out]; o != nil && o.hasData {
				o.payload = append(o.payload, p.b...)
			}
		case h.Type == protocol.SendRequest:
			if o := get(out); !o.requested {
				o.requested = true
				if out[0] == rank {
					o.at = p.at
				}
			}
		case h.Type == protocol.ClearToSend:
			if o := get(back); !o.cleared {
				o.cleared = true
				if back[1] == rank {
					o.at = p.at
				}
			}
		case h.Type == protocol.Data:
			o := get(out)
			o.hasData, o.words, o.payload = true, int(h.Size), bytes.Clone(p.b[protocol.HeaderLen:])
		case h.Type == protocol.Ack:
			finish(back)
		}
	}
	for key := range pairs {
		if pairs[key].hasData { // never acknowledged
			finish(key)
		}
	}
	slices.SortStableFunc(steps, func(a, b step) int { return int(a.at - b.at) })
	return steps
}

// script is a transport that replays recorded packets to an engine, and stores the packets that the engine sends.
type script struct {
	rank int
	in   chan datagram
	once sync.Once

	mu  sync.Mutex
	out []datagram
}

func (s *script) LocalAddr() netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, byte(s.rank + 1)}), protocol.Port)
}
func (s *script) Reliable() bool                             { return false }
func (s *script) SendPackets(int, []mpe.Packet) (int, error) { return 0, nil }

func (s *script) SendHeader(peer int, header []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out = append(s.out, datagram{src: s.rank, dst: peer, b: bytes.Clone(header)})
	return nil
}

func (s *script) SendData(peer int, header, payload []byte, shape protocol.Shape) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	total := shape.PayloadBytes(uint32(len(payload) / protocol.WordLen))
	payload = append(bytes.Clone(payload), make([]byte, total-int64(len(payload)))...)
	b := bytes.Clone(header)
	for off := int64(0); ; {
		n := shape.PayloadAt(off, total)
		s.out = append(s.out, datagram{src: s.rank, dst: peer, b: append(b, payload[off:off+n]...)})
		b = nil
		if off += n; off >= total {
			return nil
		}
	}
}

func (s *script) Recv(batch []mpe.RxPacket) (int, error) {
	d, ok := <-s.in
	if !ok {
		return 0, mpe.ErrTransportClosed
	}
	batch[0] = mpe.RxPacket{Kind: mpe.RxDatagram, Peer: d.src, Bytes: d.b}
	return 1, nil
}

func (s *script) Close() error {
	s.once.Do(func() { close(s.in) })
	return nil
}

// node is the kind of node at a rank of a capture.
type node string

const (
	cpu  node = "cpu"  // upstream's CPU library
	fpga node = "fpga" // the MPE and its wrapper
)

// recording is a capture and its nodes.
type recording struct {
	name  string
	nodes []node
	// splitTail means that the FPGA's shell splits 1424-byte datagrams.
	splitTail bool
	// partial is our host's setting for fragmented messages.
	partial handshake.OnPartial
	// differs lists, per rank that we replay, how our packets differ from the recorded ones, and why.
	differs map[int]difference
}

// difference converts the recorded packets of a rank to the packets that our engine is expected to send.
type difference struct {
	reason string
	edit   func(recorded []datagram) []datagram
}

var recordings = []recording{
	{name: "fpga_fpga_pingpong_347", nodes: []node{fpga, fpga}},
	{name: "loss_fpga_ack_lost", nodes: []node{cpu, fpga}, differs: map[int]difference{
		0: {
			reason: "DATA is retransmitted when the FPGA asks for it, and it does not ask for DATA that it has received",
			edit:   func(r []datagram) []datagram { return r[:2] },
		},
		1: {
			reason: "the ACK that was lost on the way is not in the recording; ours is sent, and once only, as " +
				"the FPGA's",
			edit: func(r []datagram) []datagram {
				ack := protocol.Header{Dst: 0, Src: 1, Call: protocol.RecvInt, Type: protocol.Ack}
				return append(slices.Clone(r), datagram{src: 1, dst: 0, b: protocol.CloudFPGA.Append(nil, ack)})
			},
		},
	}},
	{name: "loss_fpga_data_lost_multi", nodes: []node{cpu, fpga}, differs: map[int]difference{
		0: {
			reason: "CLEAR_TO_SEND is retransmitted when the FPGA asks for it, which waits for an ACK here",
			edit:   func(r []datagram) []datagram { return slices.Delete(slices.Clone(r), 1, 3) },
		},
		1: {
			reason: "the first datagram of the first DATA was lost on the way and is not in the recording",
			edit: func(r []datagram) []datagram {
				first := slices.IndexFunc(r, func(d datagram) bool { return len(d.b) > protocol.HeaderLen })
				repeat := first + slices.IndexFunc(r[first:], func(d datagram) bool {
					return len(d.b) > protocol.HeaderLen && bytes.HasPrefix(d.b, []byte{0x96, 0x96})
				})
				return slices.Insert(slices.Clone(r), first, r[repeat])
			},
		},
	}},
	{name: "loss_mid_to_fpga_corrupts", nodes: []node{cpu, fpga}, differs: map[int]difference{
		0: {
			reason: "trap 4: a fragmented message to an FPGA is not retransmitted, because the FPGA stores the " +
				"retransmission as data",
			edit: func(r []datagram) []datagram { return slices.Delete(slices.Clone(r), 4, 7) },
		},
		1: {
			reason: "the datagram that was lost on the way is in the recording, so our stand-in gets all of the " +
				"first DATA and acknowledges that instead of the retransmission",
			edit: func(r []datagram) []datagram { return r },
		},
	}},
	{name: "loss_mid_to_fpga_corrupts", nodes: []node{cpu, fpga}, partial: handshake.RetransmitPartial},
	{name: "mpe_ref_late_start", nodes: []node{cpu, fpga}},
	{name: "ref_mpe_echo_1", nodes: []node{cpu, fpga}},
	{name: "ref_mpe_echo_347", nodes: []node{cpu, fpga}},
	{name: "ref_mpe_echo_1000", nodes: []node{cpu, fpga}},
	{name: "ref_mpe_echo_uoe_347", nodes: []node{cpu, fpga}, splitTail: true},
	{name: "ref_mpe_late_recv_call", nodes: []node{cpu, fpga}},
	{name: "ref_mpe_late_start", nodes: []node{cpu, fpga}},
	{name: "ref_ref_late_recv_call", nodes: []node{cpu, cpu}, differs: requestsTooMany(1)},
	{name: "ref_ref_late_recv_stale_sr", nodes: []node{cpu, cpu}, differs: map[int]difference{
		0: requestsTooMany(1, 3)[0],
		1: {
			reason: "trap 5: the second SEND_REQUEST is the first one retransmitted, not a second message; we clear " +
				"the second message when it asks",
			edit: func(r []datagram) []datagram {
				// CLEAR, ACK, [CLEAR, CLEAR], ACK becomes CLEAR, ACK, CLEAR, ACK.
				return slices.Delete(slices.Clone(r), 2, 3)
			},
		},
	}},
	{name: "ref_ref_late_start", nodes: []node{cpu, cpu}, differs: requestsTooMany(1, 4)},
	{name: "ref_ref_pingpong_1", nodes: []node{cpu, cpu}},
	{name: "ref_ref_pingpong_346", nodes: []node{cpu, cpu}},
	{name: "ref_ref_pingpong_347", nodes: []node{cpu, cpu}},
	{name: "ref_ref_pingpong_1000", nodes: []node{cpu, cpu}},
	{name: "ref_ring3_347", nodes: []node{cpu, cpu, cpu}},
	{name: "ring3_cpu0_fpga1_cpu2_347", nodes: []node{cpu, fpga, cpu}},
	{name: "loss_bare_to_cpu_wrong_data", nodes: []node{cpu, cpu},
		differs: oneDataTooMany("and an upstream CPU receiver that starts over does")},
	{name: "late_clear_lost_bare_to_fpga", nodes: []node{cpu, fpga}, differs: map[int]difference{
		0: oneDataTooMany("and the first of its CLEAR_TO_SENDs was late")[0],
		1: {
			reason: "the CLEAR_TO_SEND that was late is not on this side of the recording",
			edit:   func(r []datagram) []datagram { return slices.Insert(slices.Clone(r), 0, r[0]) },
		},
	}},
}

// notReplayed are recordings without complete messages.
var notReplayed = map[string]string{
	"fpga_zero_words_padding": "it begins behind a SEND_REQUEST: handshake.TestTrap15EmptyMessageFromAnFPGA",
	"late_request_copy_deadlock": "it ends with two messages that never come to their DATA: " +
		"handshake.TestTrap14LateRequest",
}

// requestsTooMany is a difference: our engine, as a sender to an upstream CPU rank, waits longer before it
// retransmits SEND_REQUEST, and does not retransmit it if the rank has kept an earlier one. So it does not send
// some of the recorded packets.
func requestsTooMany(nth ...int) map[int]difference {
	return map[int]difference{0: {
		reason: "trap 5: the rank keeps a second SEND_REQUEST, and its next receive answers it",
		edit: func(r []datagram) []datagram {
			return slices.DeleteFunc(slices.Clone(r), func(d datagram) bool {
				return slices.ContainsFunc(nth, func(n int) bool { return d.at == r[n].at })
			})
		},
	}}
}

// oneDataTooMany is a difference: after the second of the three datagrams of a DATA message was lost, our engine
// retransmits the DATA only when the peer requests it.
func oneDataTooMany(why string) map[int]difference {
	return map[int]difference{0: {
		reason: "DATA is retransmitted when the peer asks for it, " + why,
		edit:   func(r []datagram) []datagram { return slices.Delete(slices.Clone(r), 1, 3) },
	}}
}

// peerConfig returns our engine's configuration for peer, in place of rank.
func (rec recording) peerConfig(rank, peer int) handshake.Config {
	if rec.nodes[rank] == fpga {
		return handshake.Config{
			Shape: protocol.FPGAShape(!rec.splitTail), Timing: handshake.DeployedFPGA(uint32(rank)), MaxWords: 1 << 20,
			Quirks: handshake.Quirks{OneDeferredHeader: true, AckOnce: true, IgnoreDestination: true, CarryOver: true},
		}
	}
	rules := handshake.CPUPeer()
	if rec.nodes[peer] == fpga {
		rules = handshake.FPGAPeer(uint32(peer))
	}
	return handshake.Config{
		Peer: rules, Shape: protocol.CPUShape(), Timing: handshake.DefaultTiming(rules), MaxWords: 1 << 20,
		OnPartial: rec.partial,
	}
}

func TestCaptures(t *testing.T) {
	files, err := filepath.Glob("../capture/testdata/captures/*.pcap")
	if err != nil || len(files) == 0 {
		t.Fatalf("no captures: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".pcap")
		if notReplayed[name] == "" &&
			!slices.ContainsFunc(recordings, func(r recording) bool { return r.name == name }) {
			t.Errorf("%s is not tested", name)
		}
	}
	for _, rec := range recordings {
		for rank := range rec.nodes {
			t.Run(fmt.Sprintf("%s/partial_%d/as_rank_%d", rec.name, rec.partial, rank), func(t *testing.T) {
				packets := readCapture(t, filepath.Join("../capture/testdata/captures", rec.name+".pcap"))
				synctest.Test(t, func(t *testing.T) { rec.replay(t, packets, rank) })
			})
		}
	}
}

// replay replays one rank.
func (rec recording) replay(t *testing.T, packets []datagram, rank int) {
	tr := &script{rank: rank, in: make(chan datagram, len(packets))}
	cfg := mpe.Config{Rank: rank, Peers: make([]mpe.Peer, len(rec.nodes))}
	for peer := range rec.nodes {
		cfg.Peers[peer] = mpe.Peer{Handshake: rec.peerConfig(rank, peer), Transport: tr}
	}
	engine, err := mpe.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	start := time.Now()
	ended := make(chan struct{})
	steps := program(t, packets, rank)
	if len(steps) == 0 {
		t.Fatal("no calls of this rank's program were found")
	}
	go func() {
		defer close(ended)
		for i, s := range steps {
			time.Sleep(s.at - time.Since(start)) // on the bubble's clock
			if s.send {
				if _, err := engine.Send(ctx, s.peer, s.payload, mpe.Options{}); err != nil && ctx.Err() == nil {
					t.Errorf("call %d, a send to rank %d: %v", i, s.peer, err)
				}
				continue
			}
			buf := make([]byte, len(s.payload))
			if _, err := engine.Recv(ctx, s.peer, buf, mpe.Options{}); ctx.Err() != nil {
				return
			} else if err != nil {
				t.Errorf("call %d, a receive from rank %d: %v", i, s.peer, err)
			} else if !bytes.Equal(buf, s.payload) {
				t.Errorf("call %d, a receive from rank %d: other bytes than were recorded", i, s.peer)
			}
		}
	}()
	var want []datagram
	for _, p := range packets {
		if p.src == rank {
			want = append(want, p)
		}
	}
	for _, p := range packets {
		if p.dst == rank {
			time.Sleep(p.at - time.Since(start))
			synctest.Wait() // everything due earlier has been sent
			tr.in <- p
		}
	}
	// The last packets may be ours, including retransmissions.
	time.Sleep(packets[len(packets)-1].at - time.Since(start) + time.Millisecond)
	synctest.Wait()
	tr.mu.Lock()
	got := slices.Clone(tr.out)
	tr.mu.Unlock()
	if d, ok := rec.differs[rank]; ok {
		want = d.edit(want)
	}
	compare(t, got, want)
	cancel()
	engine.Close(ctx)
	<-ended
}

func compare(t *testing.T, got, want []datagram) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			t.Errorf("packet %d is missing: %v", i, want[i])
		case i >= len(want):
			t.Errorf("packet %d is one too many: %v", i, got[i])
		case got[i].dst != want[i].dst || !bytes.Equal(got[i].b, want[i].b):
			t.Errorf("packet %d is %v, recorded was %v", i, got[i], want[i])
		}
	}
}
