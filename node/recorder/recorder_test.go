package recorder

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/state"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// noon is the start time of the engines in these tests. Their recordings are read an hour later.
var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// addresses returns the addresses of ranks whose packets are sent over the given protocol.
func addresses(proto pcapng.Proto) Addresses {
	return func(rank, peer int) (local, remote netip.AddrPort, _ pcapng.Proto) {
		of := func(n int) netip.AddrPort {
			return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, 0, byte(n + 1)}), 40000)
		}
		return of(rank), of(peer), proto
	}
}

// nop is the next observer of a rank.
type nop struct{}

func (nop) Dropped(int, int, mpe.Drop)  {}
func (nop) Noted(int, int, mpe.Note)    {}
func (nop) Done(int, mpe.Status, error) {}
func (nop) TransportError(int, error)   {}
func (nop) CallFailed(int, error)       {}

func (r *Rank) begin(*testing.T) *Rank {
	r.SetStartTime(noon)
	r.Observe(nop{})
	return r
}

// one returns rank 0 of a recorder with the given peers, from rank 1 on.
func one(memory int, peers ...Peer) *Rank {
	return New(memory, []Plan{{0, append([]Peer{{}}, peers...)}}).Rank(0)
}

func recorderOf(r *Rank) *Recorder { return &Recorder{ranks: []*Rank{r}} }

func readAll(r *Rank) []pcapng.Unit {
	return recorderOf(r).Reader(addresses(pcapng.UDP), noon).Read(noon.Add(time.Hour)).Units
}

func header(h protocol.Header) []byte { return protocol.CloudFPGA.Append(nil, h) }

func ms(n int) handshake.Instant { return time.Duration(n) * time.Millisecond }

// lines returns the parts of units that tests compare.
func lines(units []pcapng.Unit) (list []string) {
	for i := range units {
		u := &units[i]
		list = append(list, fmt.Sprintf("%v %v>%v %d+%d %q", u.Time.Sub(noon), u.Src.Addr(), u.Dst.Addr(), len(u.Data),
			u.Truncated, u.Comments))
	}
	return list
}

// TestUnits checks that packets are in order of time with their addresses and lengths, and that events are comments of
// the previous packet.
func TestUnits(t *testing.T) {
	r := one(1<<20, Peer{Recorded: true}, Peer{Recorded: true, Extended: true}, Peer{}).begin(t)
	p, x := r.Pair(1), r.Pair(2)
	if r.Pair(3) != nil || r.Pair(0) != nil {
		t.Error("packets are recorded that should not be")
	}
	request := header(protocol.Header{Dst: 1, Type: protocol.SendRequest})
	r.Noted(0, 1, mpe.Note{Event: state.EventCrossed, At: ms(1)})
	p.Packet(ms(3), true, 32, request, nil)
	x.Packet(ms(2), false, 200, make([]byte, 80), make([]byte, 120))
	p.Packet(ms(4), false, 1000, request, make([]byte, 968))
	r.Dropped(0, 1, mpe.Drop{Reason: state.DropStale, At: ms(4)})
	p.Packet(ms(5), false, 4, nil, nil)
	r.Dropped(0, mpe.UnknownPeer, mpe.Drop{
		Reason: state.DropUnknownAddress, At: ms(6),
		Packet: &mpe.RxPacket{SourceAddr: netip.MustParseAddrPort("10.9.9.9:7"), Bytes: []byte("who?")},
	})
	r.Dropped(0, 3, mpe.Drop{Reason: state.DropStale, At: ms(7)})
	want := []string{
		`2ms 10.0.0.3>10.0.0.1 108+92 []`,
		`3ms 10.0.0.1>10.0.0.2 32+0 ["rank 0: crossed"]`,
		`4ms 10.0.0.2>10.0.0.1 44+956 ["rank 0: dropped, stale"]`,
		`5ms 10.0.0.2>10.0.0.1 0+4 []`,
		`6ms 10.9.9.9>10.0.0.1 4+0 ["rank 0: dropped, the address belongs to no rank"]`,
	}
	if got := lines(readAll(r)); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestFailure checks that a comment has the whole text of an error, even if it takes several slots.
func TestFailure(t *testing.T) {
	r := one(1<<20, Peer{Recorded: true}).begin(t)
	r.SetStartTime(time.Now())
	r.Pair(1).Packet(0, true, 32, make([]byte, 32), nil)
	text := strings.Repeat("0123456789", 10)
	r.RecordFailure(1, errors.New(text))
	units := recorderOf(r).Reader(addresses(pcapng.UDP), time.Now()).Read(time.Now().Add(time.Hour)).Units
	if len(units) != 1 || !slices.Equal(units[0].Comments, []string{"rank 0: failed: " + text}) {
		t.Errorf("%+v", units)
	}
}

// TestLocalPeers checks that each packet between two local ranks is recorded once.
func TestLocalPeers(t *testing.T) {
	local := Peer{Recorded: true}
	rec := New(1<<20, []Plan{{0, []Peer{{}, local}}, {1, []Peer{local, {}}}})
	for rank := range 2 {
		r := rec.Rank(rank).begin(t)
		r.Pair(1-rank).Packet(ms(1+rank), true, 32, make([]byte, 32), nil)
		r.Pair(1-rank).Packet(ms(3-rank), false, 32, make([]byte, 32), nil)
	}
	got := lines(rec.Reader(addresses(pcapng.UDP), noon).Read(noon.Add(time.Hour)).Units)
	if want := []string{`1ms 10.0.0.1>10.0.0.2 32+0 []`, `2ms 10.0.0.2>10.0.0.1 32+0 []`}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestHalf checks that the packets between two local ranks start where the packets of both are present, because the
// older packets of one rank would lack their context.
func TestHalf(t *testing.T) {
	local := Peer{Recorded: true}
	rec := New(3*4*minRingSize, []Plan{{0, []Peer{{}, local, local}}, {1, []Peer{local, {}, local}},
		{2, []Peer{local, local, {}}}})
	for rank := range 3 {
		rec.Rank(rank).begin(t)
	}
	const slots = minRingSize / shortSlotSize
	for i := range slots + 3 { // the first three are overwritten
		rec.Rank(0).Pair(1).Packet(ms(2*i), true, 32, make([]byte, 32), nil)
		if i < 8 {
			rec.Rank(1).Pair(0).Packet(ms(2*i+1), true, 32, make([]byte, 32), nil)
			rec.Rank(2).Pair(0).Packet(ms(2*i+1), true, 32, make([]byte, 32), nil)
		}
	}
	rd := rec.Reader(addresses(pcapng.UDP), noon)
	count := map[string]int{}
	first := time.Duration(-1)
	read := func() {
		for _, u := range rd.Read(noon.Add(time.Hour)).Units {
			if from := u.Src.Addr().String(); count[from] == 0 && from == "10.0.0.2" {
				first = u.Time.Sub(noon)
			}
			count[u.Src.Addr().String()]++
		}
	}
	read()
	if want := map[string]int{"10.0.0.1": slots, "10.0.0.2": 5, "10.0.0.3": 8}; !maps.Equal(count, want) ||
		first != ms(7) {
		t.Errorf("%v from %v on, want %v from 7ms on", count, first, want)
	}
	// The same holds if a reader is too late.
	clear(count)
	for i := 1000; i < 1000+slots+1; i++ {
		rec.Rank(0).Pair(1).Packet(ms(2*i), true, 32, make([]byte, 32), nil)
		if i < 1002 {
			rec.Rank(1).Pair(0).Packet(ms(2*i+1), true, 32, make([]byte, 32), nil)
		}
	}
	read()
	if want := map[string]int{"10.0.0.1": slots, "10.0.0.2": 1}; !maps.Equal(count, want) {
		t.Errorf("then %v, want %v", count, want)
	}
}

// TestSharedRings checks that a ring shared by peers does not contain packets of unknown addresses, or calls.
func TestSharedRings(t *testing.T) {
	peers := make([]Peer, 40)
	for i := range peers {
		peers[i].Recorded = i > 0
	}
	r := one(5*minRingSize, peers[1:]...)
	for peer, p := range r.pairs {
		if p != nil && (p.ring == &r.rings[0] || p.ring == r.calls) {
			t.Errorf("the ring of peer %d has other entries", peer)
		}
	}
	for _, few := range []int{1, 2} {
		if r := one(few*minRingSize, peers[1:]...); r.pairs[1] == nil || r.pairs[1].ring == nil {
			t.Errorf("no ring for a peer in the memory of %d rings", few)
		}
	}
}

// TestBounded checks that the rings use at most their memory limit for any packets, and at least half of it.
func TestBounded(t *testing.T) {
	const memory = 1 << 20
	for _, ranks := range []int{1, 3, 100} {
		plans := make([]Plan, ranks)
		for i := range plans {
			plans[i] = Plan{i, make([]Peer, 300)}
			for j := range plans[i].Peers {
				plans[i].Peers[j] = Peer{Recorded: j != i, Extended: j%7 == 0}
			}
		}
		rec := New(memory, plans)
		random := rand.New(rand.NewPCG(1, uint64(ranks)))
		for i := range 100_000 {
			r := rec.ranks[random.IntN(ranks)]
			r.Observe(nop{})
			switch p := r.Pair(random.IntN(300)); {
			case p == nil:
			case i%3 == 0:
				r.Dropped(r.rank, mpe.UnknownPeer,
					mpe.Drop{Packet: &mpe.RxPacket{Bytes: make([]byte, random.IntN(2000))}})
			default:
				p.Packet(ms(i), i%2 == 0, 1<<30, make([]byte, random.IntN(200)), make([]byte, random.IntN(200)))
			}
		}
		total := 0
		for _, r := range rec.ranks {
			for i := range r.rings {
				total += cap(r.rings[i].mem)
			}
		}
		if total > memory || total < memory/2 {
			t.Errorf("%d ranks take %d bytes of %d", ranks, total, memory)
		}
	}
}

// TestFollow checks that a reader gets each packet once, and the number of packets that it missed.
func TestFollow(t *testing.T) {
	r := one(minRingSize, Peer{Recorded: true}).begin(t)
	slots := r.rings[len(r.rings)-1].numSlots
	p := r.Pair(1)
	send := func(from, n int) {
		for i := range n {
			p.Packet(ms(from+i), true, 32, make([]byte, 32), nil)
		}
	}
	send(0, 3*slots)
	rd := recorderOf(r).Reader(addresses(pcapng.UDP), noon)
	if got := rd.Read(noon.Add(ms(3*slots - 11))).Units; len(got) != slots-10 || rd.LostEntries() != 0 {
		t.Errorf("%d packets at first, %d lost", len(got), rd.LostEntries())
	}
	send(3*slots, slots+5)
	got := rd.Read(noon.Add(time.Hour)).Units
	if len(got) != slots || rd.LostEntries() != 15 || got[0].Time != noon.Add(ms(3*slots+5)) ||
		got[0].Packet != int64(slots-10+1) {
		t.Errorf("%d packets then, %d lost, the first is %v", len(got), rd.LostEntries(), got[0])
	}
	if got := rd.Read(noon.Add(time.Hour)).Units; len(got) != 0 {
		t.Errorf("%d packets came again", len(got))
	}
}

// TestCalls checks that a recording has the calls in order of time, and that calls do not displace packets.
func TestCalls(t *testing.T) {
	r := one(1<<20, Peer{Recorded: true}).begin(t)
	r.Pair(1).Packet(ms(1), true, 32, header(protocol.Header{Dst: 1, Type: protocol.SendRequest}), nil)
	for range r.calls.numSlots {
		r.Call(&mpe.Call{})
	}
	for _, c := range []mpe.Call{
		{ID: 1 << 40, Peer: mpe.AnySource, Tag: mpe.AnyTag, Comm: 7, Bytes: 1 << 33, At: ms(1), Posted: ms(1)},
		{Send: true, Peer: 1, Tag: 1<<31 - 1, Comm: 1<<32 - 1, Bytes: 4, At: ms(3), Posted: ms(2), Ended: true},
		{ID: 2, Collective: coll.Exscan, Peer: mpe.AnySource, Tag: 3, Bytes: -1, At: ms(4), Posted: ms(4)},
		{ID: 1 << 40, Peer: 1, Tag: 5, Comm: 7, Bytes: 8, At: ms(5), Posted: ms(1), Ended: true},
		{ID: 2, Collective: coll.Exscan, Peer: mpe.AnySource, Tag: 3, Bytes: -1, At: ms(9), Posted: ms(4), Ended: true,
			Err: errors.New("lost")},
	} {
		r.Call(&c)
	}
	want := []pcapng.Call{
		{Time: noon.Add(ms(1)), ID: 1 << 40, Name: "Receive", State: pcapng.CallPosted, Peer: -1, Tag: -1, Comm: 7,
			Bytes: 1 << 33},
		{Time: noon.Add(ms(3)), Name: "Send", State: pcapng.CallCompleted, Duration: ms(1), Peer: 1, Tag: 1<<31 - 1,
			Comm: 1<<32 - 1, Bytes: 4},
		{Time: noon.Add(ms(4)), ID: 2, Name: "Exscan", State: pcapng.CallPosted, Peer: -1, Tag: 3, Bytes: -1},
		{Time: noon.Add(ms(5)), ID: 1 << 40, Name: "Receive", State: pcapng.CallCompleted, Duration: ms(4), Peer: 1, Tag: 5,
			Comm: 7, Bytes: 8},
		{Time: noon.Add(ms(9)), ID: 2, Name: "Exscan", State: pcapng.CallFailed, Duration: ms(5), Peer: -1, Tag: 3,
			Bytes: -1},
	}
	recorded := recorderOf(r).Reader(addresses(pcapng.UDP), noon).Read(noon.Add(time.Hour))
	if n := len(recorded.Calls); n != r.calls.numSlots || len(recorded.Units) != 1 {
		t.Fatalf("%d calls, %d packets", n, len(recorded.Units))
	}
	recorded.Calls = recorded.Since(noon.Add(ms(1))).Calls
	if !slices.Equal(recorded.Calls, want) {
		t.Errorf("got\n%+v\nwant\n%+v", recorded.Calls, want)
	}
	file := new(bytes.Buffer)
	if err := Write(file, recorded, noon.Add(ms(10)), ""); err != nil {
		t.Fatal(err)
	}
	var got []pcapng.Call
	src, err := capture.Options{OnNote: func(n pcapng.RankNote) {
		got = append(got,
			*n.(*pcapng.Call))
	}}.NewReader(file, "file")
	for u := (pcapng.Unit{}); err == nil; {
		err = src.Next(&u)
	}
	if !errors.Is(err, io.EOF) || !slices.Equal(got, want) {
		t.Errorf("%v, in the file are\n%+v\nwant\n%+v", err, got, want)
	}
}

// TestNoAllocation checks that recording a packet allocates no memory once the ring is allocated.
func TestNoAllocation(t *testing.T) {
	r := one(1<<20, Peer{Recorded: true}).begin(t)
	p, b := r.Pair(1), make([]byte, 32)
	p.Packet(1, true, 32, b, nil)
	r.Call(&mpe.Call{})
	if n := testing.AllocsPerRun(1000, func() {
		p.Packet(1, true, 36, b, b[:4])
		r.Noted(0, 1, mpe.Note{Event: state.EventPadding, At: 1})
		r.Call(&mpe.Call{Send: true, Peer: 1, Bytes: 4})
	}); n != 0 {
		t.Errorf("%v allocations for a packet and a call", n)
	}
}

// TestFile checks that a message longer than an IP packet is complete in a recording, although only a part of it was
// recorded, over UDP and TCP, in both profiles and with any port.
func TestFile(t *testing.T) {
	const words = 100_000
	for _, proto := range []pcapng.Proto{pcapng.UDP, pcapng.TCP} {
		r := one(1<<20, Peer{Recorded: true}, Peer{Recorded: true, Extended: true}).begin(t)
		p, x := r.Pair(1), r.Pair(2)
		payload := make([]byte, 4*words)
		for i, h := range []protocol.Header{
			{Dst: 1, Type: protocol.SendRequest}, {Src: 1, Type: protocol.ClearToSend, Call: protocol.RecvInt},
			{Dst: 1, Type: protocol.Data, Size: words}, {Src: 1, Type: protocol.Ack, Call: protocol.RecvInt},
		} {
			var data []byte
			if h.Type == protocol.Data {
				data = payload
			}
			p.Packet(ms(i), h.Src == 0, 32+len(data), header(h), data)
		}
		eager := protocol.ExtHeader{Dst: 2, Type: protocol.Data, Flags: protocol.FlagEager, Session: 7, PeerSession: 9,
			Number: 1, Message: 1, Length: 20000}
		var b [protocol.ExtHeaderLen]byte
		protocol.PutExtended(b[:], &eager, payload[:20000])
		x.Packet(ms(5), true, len(b)+20000, b[:], payload[:20000])
		if proto == pcapng.UDP { // the maximum length of a datagram on any path
			eager.Number, eager.Message, eager.Length = 2, 2, 65504-protocol.ExtHeaderLen
			protocol.PutExtended(b[:], &eager, payload[:eager.Length])
			x.Packet(ms(6), true, len(b)+int(eager.Length), b[:], payload[:eager.Length])
		}
		file := new(bytes.Buffer)
		units := recorderOf(r).Reader(addresses(proto), noon).Read(noon.Add(time.Hour)).Units
		if err := Write(file, Recording{Units: units}, noon.Add(time.Second), "a test"); err != nil {
			t.Fatal(err)
		}
		a := capture.NewAnalysis("file", capture.AnalysisOptions{KeepMessages: 10})
		src, err := capture.Options{}.NewReader(file, "file")
		if err != nil {
			t.Fatal(err)
		}
		if err := a.Analyze(src); err != nil {
			t.Fatal(err)
		}
		got := a.Report()
		if len(got.Messages) != 1 || !got.Messages[0].Complete || got.Messages[0].Words != words ||
			len(got.Findings) > 0 ||
			len(got.Summary.Extended) != 1 || got.Summary.Extended[0].Complete != got.Summary.Extended[0].Messages ||
			got.Comment != "a test" || got.Summary.Seconds != 1 {
			t.Errorf("%v: %+v", proto, got)
		}
	}
}

// TestCycles checks that packets of a simulated rank have its cycle, even if a rank of the same process sends them, and
// that no other packets do.
func TestCycles(t *testing.T) {
	peer := Peer{Recorded: true}
	rec := New(1<<20, []Plan{{0, []Peer{{}, peer, peer}}, {1, []Peer{peer, {}, peer}}})
	host, role := rec.Rank(0).begin(t), rec.Rank(1).begin(t)
	simulation, cycle := uint64(0), uint64(0)
	role.RecordCycles(func() (uint64, uint64) { return simulation, cycle })
	send := func(at int, p mpe.PacketRecorder, sent bool) { p.Packet(ms(at), sent, 32, make([]byte, 32), nil) }
	send(1, host.Pair(1), true)
	simulation, cycle = 1, 17
	send(2, host.Pair(1), true)
	send(3, role.Pair(0), false) // the previous packet
	role.Dropped(1, 0, mpe.Drop{Reason: state.DropStale, At: ms(3)})
	cycle = 1<<63 + 1
	send(4, role.Pair(0), true)
	send(5, host.Pair(1), false)
	send(6, host.Pair(2), true)
	simulation, cycle = 2, 3
	send(7, role.Pair(2), false)
	send(8, role.Pair(2), true)
	want := []string{
		`1ms 10.0.0.1>10.0.0.2 32+0 []`,
		`2ms 10.0.0.1>10.0.0.2 32+0 ["rank 1: cycle 17 of simulation 1" "rank 1: dropped, stale"]`,
		`4ms 10.0.0.2>10.0.0.1 32+0 ["rank 1: cycle 9223372036854775809 of simulation 1"]`,
		`6ms 10.0.0.1>10.0.0.3 32+0 []`,
		`7ms 10.0.0.3>10.0.0.2 32+0 ["rank 1: cycle 3 of simulation 2"]`,
		`8ms 10.0.0.2>10.0.0.3 32+0 ["rank 1: cycle 3 of simulation 2"]`,
	}
	if got := lines(rec.Reader(addresses(pcapng.UDP), noon).Read(noon.Add(time.Hour)).Units); !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := testing.AllocsPerRun(1000, func() { send(9, role.Pair(2), true) }); n != 0 {
		t.Errorf("%v allocations for a packet", n)
	}
}

// TestCycleOfALostPacket checks that the cycle of an overwritten packet is not applied to the next one.
func TestCycleOfALostPacket(t *testing.T) {
	r := one(minRingSize, Peer{Recorded: true}).begin(t)
	cycle := uint64(0)
	r.RecordCycles(func() (uint64, uint64) { cycle++; return 1, cycle })
	slots := r.pairs[1].ring.numSlots
	for n := range slots {
		r.Pair(1).Packet(ms(n), true, 32, make([]byte, 32), nil)
	}
	r.Noted(0, 1, mpe.Note{Event: state.EventPadding, At: ms(slots)}) // makes a cycle the oldest entry
	units := readAll(r)
	if len(units) != (slots-1)/2 {
		t.Fatalf("%d packets in %d slots", len(units), slots)
	}
	for _, u := range units {
		if want := fmt.Sprintf("rank 0: cycle %d of simulation 1",
			u.Time.Sub(noon)/time.Millisecond+1); u.Comments[0] != want ||
			strings.HasPrefix(u.Comments[len(u.Comments)-1], "rank 0: cycle") && len(u.Comments) > 1 {
			t.Errorf("packet at %v has %q, want %q", u.Time.Sub(noon), u.Comments, want)
		}
	}
}
