package cosim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// netBench plays a simulator whose role is rank 1 of 3.
type netBench struct {
	t       *testing.T
	network *Network
	got     []Record // records passed to the role
	sent    [][]byte // datagrams sent by the role
	to      []int
	cycle   uint64
	since   [numKinds]uint64
	held    [2]uint32   // lines and metadata that the role has not accepted
	tcp     StreamState // the same for TCP
	room    int         // number of bytes that the connections can accept
	last    Step
	chunks  []Datagram
}

func newNetBench(t *testing.T) *netBench {
	b := &netBench{t: t, network: NewNetwork(1, []uint16{2718, 2718, 2720}), since: never, tcp: idleStreams,
		room: 1 << 16}
	if err := b.step(Record{Kind: KindPorts, Data: 1}); err != nil {
		t.Fatal(err)
	}
	return b
}

// step performs transfers from the role, one in each cycle.
func (b *netBench) step(transfers ...Record) error {
	b.t.Helper()
	s := &b.last
	b.network.SetTCPCapacity(b.room)
	if err := b.network.PrepareStep(s, MinNetworkFIFO); err != nil {
		b.t.Fatal(err)
	}
	b.got = append(b.got, s.Records...)
	for i := range transfers {
		transfers[i].CycleOffset = uint32(i + 1)
	}
	b.cycle += uint64(len(transfers)) + 1
	err := b.network.Advance(&Result{Cycle: b.cycle,
		StreamState: StreamState{Lines: b.held[0], Feedbacks: b.held[1], StalledSince: b.since},
		TCP:         b.tcp, Records: transfers})
	for _, d := range b.network.Outgoing() {
		b.sent, b.to = append(b.sent, bytes.Clone(d.Bytes)), append(b.to, d.Rank)
	}
	for _, d := range b.network.OutgoingTCP() {
		d.Bytes = bytes.Clone(d.Bytes)
		b.chunks = append(b.chunks, d)
	}
	return err
}

// metaTo returns the metadata of a datagram to a rank. It uses port 0, which stands for 2718, unless the rank
// has another port, as rank 2 does.
func metaTo(rank int, length int) Record {
	port := uint16(0)
	if rank == 2 {
		port = 2720
	}
	return Record{Kind: KindOutMeta, Data: packMeta(rank, port, 1, 0, length)}
}

// linesFrom returns the lines of a datagram. tlast is set on the last line.
func linesFrom(payload []byte) (records []Record) {
	for len(payload) > 0 {
		var line [lineLen]byte
		k := copy(line[:], payload)
		payload = payload[k:]
		records = append(records,
			Record{Kind: KindOutData, Data: binary.LittleEndian.Uint64(line[:]), Keep: keepBits(k),
				Last: len(payload) == 0})
	}
	return records
}

func payloadOf(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + 1)
	}
	return b
}

// TestNetworkReceives checks that a datagram reaches the role as from the deployed shell: with its metadata,
// and with its first byte in bits 7-0.
func TestNetworkReceives(t *testing.T) {
	for _, n := range []int{1, 7, 8, 9, 32, 36, protocol.MaxDatagram, MaxDatagram} {
		b := newNetBench(t)
		payload := payloadOf(n)
		if !b.network.HasSpace() || !b.network.Deliver(Datagram{Rank: 2, Port: 2720, Bytes: payload}) {
			t.Fatalf("%d bytes are not delivered", n)
		}
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		// dst_rank 1, dst_port 2718, src_rank 2, src_port 2720, len.
		if want := uint64(1 | 2718<<8 | 2<<24 | 2720<<32 | n<<48); len(b.got) != 1+lineCount(n) ||
			b.got[0].Kind != KindInMeta || b.got[0].Data != want {
			t.Fatalf("%d bytes: %d records, metadata %x, want %x", n, len(b.got), b.got[0].Data, want)
		}
		var got []byte
		for i, r := range b.got[1:] {
			line := binary.LittleEndian.AppendUint64(nil, r.Data)
			bytes := 8
			if r.Last {
				bytes = n - 8*i
			}
			if r.Kind != KindInData || r.Keep != uint8(1<<bytes-1) || r.Last != (i == lineCount(n)-1) {
				t.Errorf("%d bytes: line %d is %+v", n, i, r)
			}
			for _, rest := range line[bytes:] {
				if rest != 0 {
					t.Errorf("%d bytes: line %d ends with % x", n, i, line)
				}
			}
			got = append(got, line[:bytes]...)
		}
		if !bytes.Equal(got, payload) {
			t.Errorf("%d bytes: the role is handed % x", n, got)
		}
		if s := b.network.Stats(); s != (state.Datagrams{Received: 1}) {
			t.Errorf("%d bytes: %+v", n, s)
		}
	}
}

// TestNetworkDrops checks that the role does not receive datagrams that the deployed shell would drop.
func TestNetworkDrops(t *testing.T) {
	b := newNetBench(t)
	for _, d := range []Datagram{{Rank: -1, Bytes: payloadOf(32)}, {Rank: 0},
		{Rank: 0, Bytes: payloadOf(MaxDatagram + 1)}} {
		if b.network.Deliver(d) {
			t.Errorf("%d bytes from rank %d are delivered", len(d.Bytes), d.Rank)
		}
	}
	if err := b.step(Record{Kind: KindPorts, Data: 2}); err != nil { // opens another port
		t.Fatal(err)
	}
	if b.network.Deliver(Datagram{Rank: 0, Bytes: payloadOf(32)}) {
		t.Error("a datagram is delivered to a port that is closed")
	}
	if w := b.network.Wait(); w.Signal != "poROL_Nrc_Udp_Rx_ports" || w.Text != "bit 0 is 0: port 2718 is closed" ||
		w.Since == 0 {
		t.Errorf("%+v", w)
	}
	if s := b.network.Stats(); s != (state.Datagrams{Unknown: 1, Length: 2, Closed: 1}) {
		t.Errorf("%+v", s)
	}
	if err := b.step(); err != nil || len(b.got) != 0 {
		t.Errorf("the role is handed %v, %v", b.got, err)
	}
}

// TestNetworkHasSpace checks that a role that accepts nothing is not given more than fits.
func TestNetworkHasSpace(t *testing.T) {
	for _, n := range []int{8, protocol.MaxDatagram} {
		b := newNetBench(t)
		lines, metas := 0, 0
		for range 10 {
			for b.network.HasSpace() {
				b.network.Deliver(Datagram{Rank: 0, Port: 2718, Bytes: payloadOf(n)})
				lines += lineCount(n)
				metas++
			}
			b.held = [2]uint32{uint32(lines), uint32(metas)}
			if err := b.step(); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.got) != lines+metas || lines > MinNetworkFIFO || metas > metaFIFO || metas == 0 {
			t.Errorf("%d bytes: %d records of %d lines and %d words of metadata", n, len(b.got), lines, metas)
		}
		b.held = [2]uint32{}
		if err := b.step(); err != nil || !b.network.HasSpace() {
			t.Errorf("there is no space when the role has taken all: %v", err)
		}
	}
}

func TestNetworkSends(t *testing.T) {
	whole, long := payloadOf(protocol.MaxDatagram), payloadOf(MaxDatagram)
	cut := linesFrom(payloadOf(40)) // it ends after len bytes
	for i := range cut {
		cut[i].Last = false
	}
	tests := map[string]struct {
		transfers []Record
		want      [][]byte
	}{
		"tlast ends it": {append([]Record{metaTo(2, 0)}, linesFrom(payloadOf(36))...),
			[][]byte{payloadOf(36)}},
		"own port by its number": {append([]Record{{Kind: KindOutMeta, Data: packMeta(2, 2720, 1, 2718, 0)}},
			linesFrom(payloadOf(8))...), [][]byte{payloadOf(8)}},
		"len ends it": {append(append([]Record{metaTo(2, 40)}, cut...),
			append([]Record{metaTo(2, 8)}, cut[0])...), [][]byte{payloadOf(40), payloadOf(8)}},
		"len and tlast": {append([]Record{metaTo(2, 36)}, linesFrom(payloadOf(36))...),
			[][]byte{payloadOf(36)}},
		"the longest": {append([]Record{metaTo(2, 0)}, linesFrom(whole)...), [][]byte{whole}},
		"a line more is divided": {append([]Record{metaTo(2, 0)}, linesFrom(long)...),
			[][]byte{long[:protocol.MaxDatagram], long[protocol.MaxDatagram:]}},
		"with len as well": {append([]Record{metaTo(2, MaxDatagram)}, linesFrom(long)...),
			[][]byte{long[:protocol.MaxDatagram], long[protocol.MaxDatagram:]}},
		"lines before the metadata": {append(linesFrom(payloadOf(12)), metaTo(2, 0)), [][]byte{payloadOf(12)}},
		"metadata ahead": {append(append([]Record{metaTo(2, 0), metaTo(2, 0)}, linesFrom(payloadOf(9))...),
			linesFrom(payloadOf(3))...),
			[][]byte{payloadOf(9), payloadOf(3)}},
	}
	for name, tt := range tests {
		for _, apart := range []bool{false, true} {
			b := newNetBench(t)
			steps := [][]Record{tt.transfers}
			if apart {
				steps = nil
				for _, r := range tt.transfers {
					steps = append(steps, []Record{r})
				}
			}
			for _, s := range steps {
				if err := b.step(s...); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
			if fmt.Sprint(b.sent) != fmt.Sprint(tt.want) || !b.network.IsIdle() {
				t.Errorf("%s: sent % x, want % x", name, b.sent, tt.want)
			}
			for _, rank := range b.to {
				if rank != 2 {
					t.Errorf("%s: sent to rank %d", name, rank)
				}
			}
		}
	}
}

// TestNetworkRefuses checks that the role's datagrams to an unknown rank or port are dropped, and that later
// datagrams are sent.
func TestNetworkRefuses(t *testing.T) {
	for _, tt := range []struct {
		text string
		meta uint64
	}{
		{"dst_rank is 3: the cluster has ranks 0 to 2", packMeta(3, 0, 1, 0, 0)},
		{"dst_rank is 1, the role's own rank", packMeta(1, 0, 1, 0, 0)},
		{"dst_port is 2718: rank 2 is at port 2720", packMeta(2, 2718, 1, 0, 0)},
		{"dst_port is 2718: rank 2 is at port 2720", packMeta(2, 0, 1, 0, 0)},
		{"src_port is 2719: the role's rank is at port 2718", packMeta(0, 0, 1, 2719, 0)},
	} {
		text := tt.text
		b := newNetBench(t)
		transfers := append([]Record{{Kind: KindOutMeta, Data: tt.meta}}, linesFrom(payloadOf(40))...)
		transfers = append(append(transfers, metaTo(0, 0)), linesFrom(payloadOf(8))...)
		if err := b.step(transfers...); err != nil {
			t.Fatal(err)
		}
		r := b.network.LastRefusal()
		if r == nil || r.Signal != "soROLE_Nrc_Udp_Meta_TDATA" || r.Cycle != 3 || !strings.Contains(r.Problem, text) {
			t.Errorf("%s: %v", text, r)
		}
		if len(b.sent) != 1 || len(b.sent[0]) != 8 || b.to[0] != 0 || b.network.Stats().Refused != 1 ||
			b.network.Stats().Sent != 1 {
			t.Errorf("%s: sent %v, %+v", text, b.sent, b.network.Stats())
		}
	}
}

// TestNetworkFaults checks that a fault of a role is reported with the signal and the cycle, and stops the
// exchange.
func TestNetworkFaults(t *testing.T) {
	line := func(keep uint8, last bool) Record { return Record{Kind: KindOutData, Keep: keep, Last: last} }
	endless := []Record{metaTo(2, 0)}
	for range maxStream / lineLen {
		endless = append(endless, line(0xff, false))
	}
	for name, tt := range map[string]struct {
		transfers []Record
		want      string
	}{
		"a hole": {[]Record{metaTo(2, 0), line(0xff, false), line(0xf0, true)},
			"soNRC_Udp_Data_tkeep at cycle 5: 0xf0: the valid bytes of a line must be its first ones"},
		"no byte": {[]Record{metaTo(2, 0), line(0, true)}, "soNRC_Udp_Data_tkeep at cycle 4: 0x00"},
		"a part too early": {[]Record{metaTo(2, 0), line(0x0f, false), line(0xff, true)},
			"soNRC_Udp_Data_tkeep at cycle 4: 0x0f on a line that is not the last"},
		"longer than len": {[]Record{metaTo(2, 12), line(0xff, false), line(0xff, true)},
			"soNRC_Udp_Data_tkeep at cycle 5: 0xff: len of the metadata is 12, and with this line the datagram " +
				"has 16 bytes"},
		"shorter than len": {[]Record{metaTo(2, 16), line(0xff, true)},
			"soNRC_Udp_Data_tlast at cycle 4: set after 8 bytes: len of the metadata is 16"},
		"no end": {endless, "soNRC_Udp_Data_tlast at cycle 8197: not set in 65536 bytes: without a len in " +
			"the metadata, it ends the datagram, in the datagram to rank 2 (cycle 3)"},
		"a hole, dropped": {[]Record{metaTo(9, 0), line(0x05, true)}, "soNRC_Udp_Data_tkeep"},
	} {
		b := newNetBench(t)
		var err error
		for rest := tt.transfers; len(rest) > 0 && err == nil; {
			n := min(len(rest), MaxRecords)
			err = b.step(rest[:n]...)
			rest = rest[n:]
		}
		f, ok := errors.AsType[*FaultError](err)
		if !ok || !strings.Contains(f.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
			continue
		}
		if w := b.network.Wait(); !b.network.IsFaulty() || w.Signal != f.Signal || w.Since != f.Cycle {
			t.Errorf("%s: it waits for %+v", name, w)
		}
		if _, overdue := b.network.Overdue(0); overdue || b.network.HasSpace() {
			t.Errorf("%s: a faulty network is overdue or has space", name)
		}
		n := len(b.sent)
		if err := b.step(append([]Record{metaTo(2, 0)}, linesFrom(payloadOf(8))...)...); err != nil ||
			len(b.sent) != n {
			t.Errorf("%s: the exchange continues: %v, %v", name, b.sent, err)
		}
	}
}

// TestNetworkWaits checks that a wait of the exchange is described by the signal and the cycle.
func TestNetworkWaits(t *testing.T) {
	waits := func(kind Kind) [numKinds]uint64 {
		since := never
		since[kind] = 2
		return since
	}
	for name, tt := range map[string]struct {
		transfers []Record
		since     [numKinds]uint64
		want      Wait
	}{
		"nothing": {nil, never, Wait{"", 1, "no datagram is in progress"}},
		"data": {nil, waits(KindInData),
			Wait{"siNRC_Udp_Data_tready", 2, "low, with a line of a datagram offered, and 0 queued behind it"}},
		"metadata": {nil, waits(KindInMeta),
			Wait{"siNRC_Role_Udp_Meta_TREADY", 2, "low, with the metadata of a datagram offered"}},
		"the rest": {append([]Record{metaTo(0, 0)}, linesFrom(payloadOf(16))[:1]...), never,
			Wait{"soNRC_Udp_Data_tvalid", 4, "low, after 8 bytes of the datagram to rank 0 (cycle 3)"}},
		"the lines": {[]Record{metaTo(0, 0)}, never,
			Wait{"soNRC_Udp_Data_tvalid", 3, "low, with the metadata of a datagram to rank 0 taken"}},
		"no metadata": {linesFrom(payloadOf(16)), never,
			Wait{"soROLE_Nrc_Udp_Meta_TVALID", 4, "low, with 2 lines of a datagram taken"}},
		"a closed port": {[]Record{{Kind: KindPorts}}, never,
			Wait{"poROL_Nrc_Udp_Rx_ports", 3, "bit 0 is 0: port 2718 is closed"}},
	} {
		b := newNetBench(t)
		b.since = tt.since
		if err := b.step(tt.transfers...); err != nil {
			t.Fatal(err)
		}
		if w := b.network.Wait(); w != tt.want {
			t.Errorf("%s: %+v, want %+v", name, w, tt.want)
		}
		b.cycle += 100
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		if since, ok := b.network.Overdue(100); ok != (name != "nothing") || ok && since != tt.want.Since {
			t.Errorf("%s: overdue %v since cycle %d", name, ok, since)
		}
		if _, ok := b.network.Overdue(1000); ok {
			t.Errorf("%s: overdue after 100 cycles of 1000", name)
		}
	}
}

// TestNetworkRefusesFrames checks that impossible results from a simulator are rejected.
func TestNetworkRefusesFrames(t *testing.T) {
	many := make([]Record, metaFIFO+1)
	for i := range many {
		many[i] = metaTo(0, 0)
	}
	for name, r := range map[string]Result{
		"lines that it was not given":    {Cycle: 9, StreamState: StreamState{Lines: 1}},
		"metadata that it was not given": {Cycle: 9, StreamState: StreamState{Feedbacks: 1}},
		"chunks that it was not given":   {Cycle: 9, TCP: StreamState{Lines: 1}},
		"TCP metadata without space":     {Cycle: 99, Records: tcpOf(many)},
		"time goes back":                 {Cycle: 1},
		"a transfer in the future":       {Cycle: 9, Records: []Record{{Kind: KindOutMeta, CycleOffset: 100}}},
		"metadata without space":         {Cycle: 99, Records: many},
	} {
		b := newNetBench(t)
		r.StalledSince = never
		if err := b.network.Advance(&r); !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzNetworkEcho checks that a role that echoes its records returns each datagram, no matter how the lines are
// distributed over steps.
func FuzzNetworkEcho(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(1), false)
	f.Add(payloadOf(1416), uint8(7), true)
	f.Add(payloadOf(1424), uint8(200), false)
	f.Fuzz(func(t *testing.T, payload []byte, at uint8, withLen bool) {
		if len(payload) == 0 || len(payload) > MaxDatagram {
			return
		}
		b := newNetBench(t)
		if !b.network.Deliver(Datagram{Rank: 2, Port: 2720, Bytes: payload}) {
			t.Fatal("not delivered")
		}
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		length := 0
		if withLen {
			length = len(payload)
		}
		back := []Record{{Kind: KindOutMeta, Data: packMeta(2, 2720, 1, 2718, length)}}
		for _, r := range b.got[1:] {
			r.Kind = KindOutData
			back = append(back, r)
		}
		cut := min(int(at), len(back))
		if err := errors.Join(b.step(back[:cut]...), b.step(back[cut:]...)); err != nil {
			t.Fatal(err)
		}
		if got := bytes.Join(b.sent, nil); !bytes.Equal(got, payload) || len(b.sent) > 2 {
			t.Errorf("% x comes back as % x", payload, b.sent)
		}
	})
}

// FuzzNetworkResult checks that any result from a simulator is either rejected or yields a limited number of
// datagrams and chunks of limited length.
func FuzzNetworkResult(f *testing.F) {
	f.Add(AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}, TCP: idleStreams,
			Records: append([]Record{metaTo(0, 0)}, linesFrom(payloadOf(20))...)})[HeadLen:], uint16(100))
	f.Add(AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}, TCP: idleStreams,
			Records: []Record{{Kind: KindPorts, Data: 1}, metaTo(7, 3)}})[HeadLen:], uint16(100))
	f.Add(AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}, TCP: idleStreams,
			Records: tcpOf(append([]Record{metaTo(0, 3000)}, linesFrom(payloadOf(3000))...))})[HeadLen:], uint16(4000))
	f.Add(AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}, TCP: idleStreams,
			Records: tcpOf(append([]Record{metaTo(0, 0)}, linesFrom(payloadOf(3000))...))})[HeadLen:], uint16(4000))
	f.Fuzz(func(t *testing.T, body []byte, room uint16) {
		var r Result
		if ParseResult(body, BoundaryTCP, &r) != nil {
			return
		}
		n := NewNetwork(1, []uint16{2718, 2718, 2720})
		for range 2 {
			var s Step
			n.SetTCPCapacity(int(room))
			_ = n.PrepareStep(&s, MinNetworkFIFO)
			for n.HasSpace() && n.Deliver(Datagram{Rank: 0, Port: 2718, Bytes: payloadOf(100)}) {
			}
			for n.HasSpaceTCP() {
				n.DeliverTCP(Datagram{Rank: 0, Port: 40000, LocalPort: 2718, Bytes: payloadOf(100)})
			}
			_ = n.Advance(&r)
			for _, sent := range []struct {
				list      []Datagram
				most, sum int
			}{{n.Outgoing(), protocol.MaxDatagram, MaxRecords*lineLen + protocol.MaxDatagram},
				{n.OutgoingTCP(), MaxSegment, int(room)}} {
				total := 0
				for _, d := range sent.list {
					if total += len(d.Bytes); len(d.Bytes) == 0 || len(d.Bytes) > sent.most || d.Rank == 1 ||
						d.Rank > 2 || d.Port == 0 {
						t.Fatalf("%d bytes to port %d of rank %d", len(d.Bytes), d.Port, d.Rank)
					}
				}
				if total > sent.sum {
					t.Fatalf("%d bytes of one step, of %d", total, sent.sum)
				}
			}
			_, _, _, _ = n.Wait(), n.IsIdle(), n.Stats(), n.TCPStats()
		}
	})
}

func TestNetworkAllocations(t *testing.T) {
	n := NewNetwork(1, []uint16{2718, 2718})
	payload := payloadOf(1000)
	transfers := append([]Record{metaTo(0, 0)}, linesFrom(payload)...)
	transfers = append(transfers, tcpOf(transfers)...)
	var s Step
	result := Result{StreamState: StreamState{StalledSince: never}, TCP: idleStreams,
		Records: []Record{{Kind: KindPorts, Data: 1}}}
	step := func() {
		n.SetTCPCapacity(1 << 16)
		_ = n.PrepareStep(&s, 4096)
		if err := n.Advance(&result); err != nil {
			t.Fatal(err)
		}
	}
	step()
	result.Records = transfers
	exchange := func() {
		if !n.HasSpace() || !n.Deliver(Datagram{Rank: 0, Port: 2718, Bytes: payload}) {
			t.Fatal("not delivered")
		}
		n.DeliverTCP(Datagram{Rank: 0, Port: 40000, LocalPort: 2718, Bytes: payload})
		step()
		if len(n.Outgoing()) != 1 || len(n.OutgoingTCP()) != 1 {
			t.Fatalf("%d datagrams and %d chunks were sent", len(n.Outgoing()), len(n.OutgoingTCP()))
		}
	}
	exchange()
	if allocs := testing.AllocsPerRun(100, exchange); allocs != 0 {
		t.Errorf("%v allocations for a datagram and a chunk in each direction", allocs)
	}
}
