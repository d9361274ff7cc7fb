package cosim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/state"
)

// tcpOf returns the same transfers on the TCP streams.
func tcpOf(transfers []Record) []Record {
	tcp := append([]Record(nil), transfers...)
	for i := range tcp {
		tcp[i].Kind += KindTCP
	}
	return tcp
}

// chunkTo returns the metadata of a chunk sent to a port of a rank.
func chunkTo(rank int, port, own uint16, length int) Record {
	return Record{Kind: KindOutMeta, Data: packMeta(rank, port, 1, own, length)}
}

// TestTCPReceives checks that a chunk reaches the role with both ports of its connection, as it does from the
// shell.
func TestTCPReceives(t *testing.T) {
	for _, n := range []int{1, 8, 9, 1352, MaxChunk} {
		b := newNetBench(t)
		if err := b.step(); err != nil || !b.network.HasSpaceTCP() {
			t.Fatalf("no space: %v", err)
		}
		b.network.DeliverTCP(Datagram{Rank: 2, Port: 40000, LocalPort: 2725, Bytes: payloadOf(n)})
		if err := b.step(); err != nil {
			t.Fatal(err)
		}
		if want := uint64(1 | 2725<<8 | 2<<24 | 40000<<32 | n<<48); len(b.got) != 1+lineCount(n) ||
			b.got[0].Kind != KindTCP+KindInMeta || b.got[0].Data != want {
			t.Fatalf("%d bytes: %d records, metadata %x, want %x", n, len(b.got), b.got[0].Data, want)
		}
		var got []byte
		for i, r := range b.got[1:] {
			if r.Kind != KindTCP+KindInData || r.Last != (i == lineCount(n)-1) {
				t.Errorf("%d bytes: line %d is %+v", n, i, r)
			}
			got = append(got, binary.LittleEndian.AppendUint64(nil, r.Data)[:min(8, n-8*i)]...)
		}
		if !bytes.Equal(got, payloadOf(n)) {
			t.Errorf("%d bytes: the role is handed % x", n, got)
		}
		if s := b.network.TCPStats(); s != (state.Chunks{Received: 1}) || b.network.Stats() != (state.Datagrams{}) {
			t.Errorf("%d bytes: %+v, %+v", n, s, b.network.Stats())
		}
	}
}

// TestTCPHasSpace checks that a role that accepts no chunks is given no more of them than fit, and still gets its
// datagrams.
func TestTCPHasSpace(t *testing.T) {
	b := newNetBench(t)
	if err := b.step(); err != nil {
		t.Fatal(err)
	}
	for b.network.HasSpaceTCP() {
		b.network.DeliverTCP(Datagram{Rank: 0, Port: 40000, LocalPort: 2718, Bytes: payloadOf(MaxChunk)})
		b.tcp.Lines += uint32(lineCount(MaxChunk))
		b.tcp.Feedbacks++
	}
	if b.tcp.Lines > MinNetworkFIFO || b.tcp.Feedbacks != 1 {
		t.Fatalf("%d lines held, of %d", b.tcp.Lines, MinNetworkFIFO)
	}
	if err := b.step(); err != nil || b.network.HasSpaceTCP() || !b.network.HasSpace() || b.network.IsIdle() {
		t.Fatalf("%v, space %v and %v", err, b.network.HasSpaceTCP(), b.network.HasSpace())
	}
	b.tcp = idleStreams
	if err := b.step(); err != nil || !b.network.HasSpaceTCP() || !b.network.IsIdle() || !b.last.StopWhenDrained {
		t.Errorf("there is no space when the role has taken all: %v", err)
	}
}

func TestTCPSends(t *testing.T) {
	long := payloadOf(3000)
	tlastWithin := linesFrom(payloadOf(40))
	tlastWithin[1].Last = true // the shell ignores this tlast
	noTlast := linesFrom(payloadOf(3000))
	for i := range noTlast {
		noTlast[i].Last = false
	}
	reply := chunkTo(2, 40000, 2725, 0)
	for name, tt := range map[string]struct {
		transfers []Record
		want      [][]byte
		port, own uint16
	}{
		"tlast ends it": {append([]Record{reply}, linesFrom(payloadOf(36))...), [][]byte{payloadOf(36)},
			40000, 2725},
		"ports of 0": {append([]Record{chunkTo(2, 0, 0, 0)}, linesFrom(payloadOf(36))...),
			[][]byte{payloadOf(36)}, 2718, 2718},
		"len ends it, not tlast": {append([]Record{chunkTo(2, 40000, 2725, 40)}, tlastWithin...),
			[][]byte{payloadOf(40)}, 40000, 2725},
		"a long one is divided": {append([]Record{reply}, linesFrom(long)...),
			[][]byte{long[:1352], long[1352:2704], long[2704:]}, 40000, 2725},
		"with len as well": {append([]Record{chunkTo(2, 40000, 2725, 3000)}, noTlast...),
			[][]byte{long[:1352], long[1352:2704], long[2704:]}, 40000, 2725},
		"lines before the metadata": {append(linesFrom(payloadOf(12)), reply), [][]byte{payloadOf(12)}, 40000, 2725},
	} {
		b := newNetBench(t)
		for _, r := range tcpOf(tt.transfers) {
			if err := b.step(r); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		var got [][]byte
		for _, c := range b.chunks {
			if got = append(got, c.Bytes); c.Rank != 2 || c.Port != tt.port || c.LocalPort != tt.own {
				t.Errorf("%s: sent from port %d to port %d of rank %d", name, c.LocalPort, c.Port, c.Rank)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(tt.want) || !b.network.IsIdle() || len(b.sent) != 0 {
			t.Errorf("%s: sent % x, want % x", name, got, tt.want)
		}
	}
}

// TestTCPEndless checks that an endless sequence of lines is not a fault on TCP, but is sent in segments.
func TestTCPEndless(t *testing.T) {
	b := newNetBench(t)
	if err := b.step(tcpOf([]Record{chunkTo(2, 40000, 0, 0)})...); err != nil {
		t.Fatal(err)
	}
	line := Record{Kind: KindTCP + KindOutData, Keep: 0xff}
	for range 3 * maxStream / lineLen / 1024 {
		lines := make([]Record, 1024)
		for i := range lines {
			lines[i] = line
		}
		if err := b.step(lines...); err != nil {
			t.Fatal(err)
		}
	}
	if len(b.chunks) != 3*maxStream/MaxSegment {
		t.Errorf("%d chunks", len(b.chunks))
	}
}

// TestTCPStalls checks that chunks that the connections cannot accept stay with the role.
func TestTCPStalls(t *testing.T) {
	b := newNetBench(t)
	b.room = MaxSegment + 16
	if err := b.step(tcpOf([]Record{chunkTo(2, 40000, 0, 0)})...); err != nil || b.last.TCPLines != 171 {
		t.Fatalf("%d lines are granted, %v", b.last.TCPLines, err)
	}
	lines := tcpOf(linesFrom(payloadOf(1352 + 16)))
	if err := b.step(lines[:100]...); err != nil {
		t.Fatal(err)
	}
	if err := b.step(lines[100:170]...); err != nil || b.last.TCPLines != 71 || len(b.chunks) != 1 {
		t.Fatalf("%d lines are granted, %v, %d chunks", b.last.TCPLines, err, len(b.chunks))
	}
	b.room = 7
	b.tcp.StalledSince[KindOutData] = b.cycle
	if err := b.step(); err != nil || b.last.TCPLines != 0 || b.last.Lines == 0 {
		t.Fatalf("%d lines are granted, %v", b.last.TCPLines, err)
	}
	if w := b.network.Wait(); w.Signal != "" || w.Since != b.tcp.StalledSince[KindOutData] ||
		w.Text != "the peer of a TCP connection accepts no more data" {
		t.Errorf("%+v", w)
	}
	if err := b.step(lines[170]); !errors.Is(err, ErrFrame) {
		t.Errorf("a line beyond the capacity: %v", err)
	}
}

// TestTCPRefuses checks that a chunk to an unknown rank is dropped up to its tlast or len.
func TestTCPRefuses(t *testing.T) {
	for _, tt := range []struct {
		text string
		meta Record
	}{
		{"dst_rank is 3: the cluster has ranks 0 to 2: the chunk is dropped", chunkTo(3, 40000, 0, 0)},
		{"dst_rank is 1, the role's own rank: the chunk is dropped", chunkTo(1, 40000, 0, 40)},
	} {
		b := newNetBench(t)
		transfers := append([]Record{tt.meta}, linesFrom(payloadOf(40))...)
		transfers = append(append(transfers, chunkTo(0, 40000, 0, 0)), linesFrom(payloadOf(8))...)
		if err := b.step(tcpOf(transfers)...); err != nil {
			t.Fatal(err)
		}
		if r := b.network.LastRefusal(); r == nil || r.Signal != "soROLE_Nrc_Tcp_Meta_TDATA" || r.Cycle != 3 ||
			r.Problem != tt.text {
			t.Errorf("%s: %v", tt.text, r)
		}
		if len(b.chunks) != 1 || b.chunks[0].Rank != 0 || b.network.TCPStats() != (state.Chunks{Sent: 1, Refused: 1}) {
			t.Errorf("%s: sent %v, %+v", tt.text, b.chunks, b.network.TCPStats())
		}
	}
}

// TestTCPFindings checks that faults and waits on TCP are reported with the names of the TCP signals.
func TestTCPFindings(t *testing.T) {
	line := func(keep uint8, last bool) Record { return Record{Kind: KindOutData, Keep: keep, Last: last} }
	for want, transfers := range map[string][]Record{
		"soNRC_Tcp_Data_tkeep at cycle 4: 0xf0: the valid bytes of a line must be its first ones, at least 1, in the " +
			"chunk to rank 2 (cycle 3)": {chunkTo(2, 40000, 0, 0), line(0xf0, true)},
		"soNRC_Tcp_Data_tkeep at cycle 5: 0xff: len of the metadata is 12, and with this line the chunk has 16 bytes": {chunkTo(2, 40000, 0, 12), line(0xff, false), line(0xff, true)},
	} {
		b := newNetBench(t)
		err := b.step(tcpOf(transfers)...)
		if f, ok := errors.AsType[*FaultError](err); !ok || !strings.Contains(f.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
		if b.network.HasSpaceTCP() || !b.network.IsFaulty() {
			t.Error("a faulty network has space")
		}
	}
	waits := func(kind Kind) StreamState {
		h := idleStreams
		h.StalledSince[kind] = 2
		return h
	}
	for _, tt := range []struct {
		transfers []Record
		held      StreamState
		want      Wait
	}{
		{nil, waits(KindInData),
			Wait{"siNRC_Tcp_Data_tready", 2, "low, with a line of a chunk offered, and 0 queued behind it"}},
		{nil, waits(KindInMeta), Wait{"siNRC_Role_Tcp_Meta_TREADY", 2, "low, with the metadata of a chunk offered"}},
		{append([]Record{chunkTo(0, 1, 0, 0)}, linesFrom(payloadOf(16))[:1]...), idleStreams,
			Wait{"soNRC_Tcp_Data_tvalid", 4, "low, after 8 bytes of the chunk to rank 0 (cycle 3)"}},
		{[]Record{chunkTo(0, 1, 0, 0)}, idleStreams,
			Wait{"soNRC_Tcp_Data_tvalid", 3, "low, with the metadata of a chunk to rank 0 taken"}},
		{linesFrom(payloadOf(16)), idleStreams,
			Wait{"soROLE_Nrc_Tcp_Meta_TVALID", 4, "low, with 2 lines of a chunk taken"}},
	} {
		b := newNetBench(t)
		b.tcp = tt.held
		if err := b.step(tcpOf(tt.transfers)...); err != nil {
			t.Fatal(err)
		}
		if w := b.network.Wait(); w != tt.want {
			t.Errorf("%+v, want %+v", w, tt.want)
		}
	}
	// A role that uses only TCP has no closed port.
	b := newNetBench(t)
	if err := b.step(Record{Kind: KindPorts}, Record{Kind: KindTCP + KindPorts, Data: 5}); err != nil ||
		b.network.PortsTCP() != 5 {
		t.Fatal(err)
	}
	if w := b.network.Wait(); w.Signal != "" {
		t.Errorf("%+v", w)
	}
}
