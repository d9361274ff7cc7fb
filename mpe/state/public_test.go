package state

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// rankWith returns the state of rank 0 with the given number of peers. Operations with every second peer are
// waiting.
func rankWith(peers int) *Rank {
	r := &Rank{RankInfo: RankInfo{Rank: 0, Address: "10.0.0.1:2718", Role: "host",
		Attached: []Program{{PID: 7, UID: 9, Stopped: true}}}}
	r.Engine.Size = peers + 1
	for i := range peers {
		p := Peer{
			Rank: i + 1, Kind: "software", Address: fmt.Sprintf("10.0.%d.%d:2718", i/250, i%250+2), Profile: "extended",
			Transport: "udp", SinceLastPacket: new(rand.Float64()),
			PacketsIn: rand.Uint64(), BytesIn: rand.Uint64(), MessageCounts: MessageCounts{Sent: 3}, Unexpected: 1,
			Unmatched:    []Envelope{{Tag: new(rand.Int()), Bytes: rand.Int64()}},
			NetworkError: "write udp: network is unreachable",
			Extended: &Extended{Session: 0x1234567, PeerSession: 0x7654321, Hellos: 4,
				MessageCredit: rand.Uint32()},
		}
		if i%2 == 1 {
			p.Receiving = &Wait{State: handshake.WaitRequest, WaitsFor: protocol.SendRequest, Seconds: rand.Float64(),
				Envelope: Envelope{Tag: new(rand.Int()), Bytes: rand.Int64()}, Text: "rank 0 has waited"}
		}
		r.Engine.Peers = append(r.Engine.Peers, p)
	}
	return r
}

func encoded(r *Rank) []byte { return PublicOf(r).Encode() }

// TestPublic checks that the fields that concern waits are copied unchanged, and that other fields and
// session numbers are not.
func TestPublic(t *testing.T) {
	r := rankWith(3)
	r.Engine.Calls = []collective.Snapshot{{Collective: "Bcast", Number: 3, Root: new(2), WaitsFor: []int{2},
		Members: []int{0, 2}, Text: "long"}}
	r.Engine.Collectives = []collective.CallCount{{Collective: "Bcast", Calls: 3}}
	p, err := DecodePublic(encoded(r), 0, 4)
	if err != nil || p.CutShort {
		t.Fatalf("%v, %+v", err, p)
	}
	got := p.State()
	want := rankWith(0)
	want.Attached[0].UID = 0
	want.Engine = r.Engine
	want.Engine.Peers = []Peer{r.Engine.Peers[1], r.Engine.Peers[0], r.Engine.Peers[2]} // peers with waits first
	want.Engine.Collectives = nil
	want.Engine.Calls[0].Text = ""
	for i := range want.Engine.Peers {
		peer := &want.Engine.Peers[i]
		peer.BytesIn = 0
		peer.Extended.Session, peer.Extended.PeerSession = 0, 1
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// TestPublicFields checks that a new field in a type of a state does not leave the process until a developer adds
// it to the list of public fields, with -update.
func TestPublicFields(t *testing.T) {
	var list []string
	eachField(reflect.TypeFor[PublicRank](), "", func(name string) { list = append(list, name) })
	text := strings.Join(list, "\n") + "\n"
	const file = "testdata/public.txt"
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(known) != text {
		t.Errorf("the public fields have changed to\n%s", text)
	}
}

var update = flag.Bool("update", false, "write the list of public fields")

// eachField visits the fields of a type, including nested ones, by their JSON names.
func eachField(of reflect.Type, prefix string, visit func(name string)) {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	if of.Kind() != reflect.Struct {
		return
	}
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if !f.IsExported() || name == "-" { // not in JSON
			continue
		}
		visit(prefix + name)
		eachField(f.Type, prefix+name+".", visit)
	}
}

// TestBounds checks that a report is always within the bounds, reports that it was cut short, and keeps the
// peers with waits.
func TestBounds(t *testing.T) {
	for peers, cut := range map[int]bool{0: false, 16: false, MaxPeers + 1: true, 5000: true} {
		r := rankWith(peers)
		text := encoded(r)
		got, err := DecodePublic(text, 0, peers+1)
		if err != nil || got.CutShort != cut || len(text) > MaxReport || len(got.Engine.Peers) > MaxPeers ||
			peers > 0 && len(got.Engine.Peers) < min(peers, 16) {
			t.Errorf("%d peers: %v, %d bytes, %d are reported, cut short %v", peers, err, len(text),
				len(got.Engine.Peers), got.CutShort)
			continue
		}
		t.Logf("%d peers: %d of them in %d bytes", peers, len(got.Engine.Peers), len(text))
		for i := range min(len(got.Engine.Peers), peers/2) {
			if got.Engine.Peers[i].Receiving == nil {
				t.Errorf("%d peers: rank %d does not wait, and is among the first", peers, got.Engine.Peers[i].Rank)
			}
		}
	}
	r := rankWith(2)
	for range 100 {
		var members []int
		for rank := range 20000 {
			if rand.IntN(2) == 0 {
				members = append(members, rank)
			}
		}
		r.Engine.Calls = append(r.Engine.Calls,
			collective.Snapshot{Collective: "Bcast", Members: members, WaitsFor: members})
		r.Attached = append(r.Attached, Program{PID: 1})
	}
	text := encoded(r)
	if got, err := DecodePublic(text, 0, 20000); err != nil || !got.CutShort || len(got.Engine.Calls) > MaxCalls ||
		len(got.Programs) > MaxPrograms {
		t.Errorf("calls: %v, %d bytes, %+v", err, len(text), got)
	}
	r = rankWith(1)
	r.Engine.Peers[0].NetworkError, r.KernelState = strings.Repeat("é", MaxText), "\x1b[2J\n"
	if got, err := DecodePublic(encoded(r), 0, 2); err != nil || len(got.Engine.Peers[0].NetworkError) > MaxText ||
		strings.ContainsAny(string(got.KernelState), "\x1b\n") {
		t.Errorf("texts: %v, %q", err, got.KernelState)
	}
}

func deflate(text string) []byte {
	var b bytes.Buffer
	w, _ := flate.NewWriter(&b, flate.BestCompression)
	w.Write([]byte(text))
	w.Close()
	return b.Bytes()
}

// TestInvalid checks that an answer that is not a report of the rank is refused.
func TestInvalid(t *testing.T) {
	for name, text := range map[string][]byte{
		"nothing":         nil,
		"no deflate":      []byte("report"),
		"no JSON":         deflate("report"),
		"cut off":         encoded(rankWith(9))[:200],
		"too long":        make([]byte, MaxReport+1),
		"a bomb":          deflate(`{"address":"` + strings.Repeat("a", 5<<20) + `"}`),
		"another rank's":  deflate(`{"rank":1,"engine":{"rank":1}}`),
		"of two ranks":    deflate(`{"rank":0,"engine":{"rank":1}}`),
		"a peer too many": deflate(`{"engine":{"peers":[{"rank":4}]}}`),
		"a negative peer": deflate(`{"engine":{"peers":[{"rank":-1}]}}`),
		"its own peer":    deflate(`{"engine":{"peers":[{"rank":0}]}}`),
		"too many peers": deflate(`{"engine":{"peers":[` + strings.Repeat(`{"rank":1},`, MaxPeers) +
			`{"rank":1}]}}`),
		"a call of nobody":    deflate(`{"engine":{"calls":[{"waits_for":[4]}]}}`),
		"a root of nobody":    deflate(`{"engine":{"calls":[{"root":-7}]}}`),
		"a member of nobody":  deflate(`{"engine":{"calls":[{"members":[-1]}]}}`),
		"numbers of no range": deflate(`{"engine":{"peers":[{"rank":1e30}]}}`),
	} {
		if r, err := DecodePublic(text, 0, 4); !errors.Is(err, ErrInvalid) || r != nil {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if r, err := DecodePublic(deflate(`{"rank":0,"engine":{"rank":0,"news":{"a":[1]}},"more":true}`), 0,
		4); err != nil || r.Rank != 0 {
		t.Errorf("unknown fields of a later version: %v", err)
	}
	longest := encoded(rankWith(3))
	longest = append(longest, make([]byte, MaxReport-len(longest))...) // never read
	if _, err := DecodePublic(longest, 0, 4); err != nil {
		t.Errorf("%d bytes: %v", len(longest), err)
	}
}

// TestCheck checks that a report is refused if, and only if, it exceeds the bounds.
func TestCheck(t *testing.T) {
	const ranks = 100
	for _, tt := range []struct {
		name   string
		change func(p *PublicRank)
		valid  bool
	}{
		{"nothing", func(*PublicRank) {}, true},
		{"the most peers", func(p *PublicRank) { p.Engine.Peers = make([]PublicPeer, MaxPeers) }, true},
		{"a peer more", func(p *PublicRank) { p.Engine.Peers = make([]PublicPeer, MaxPeers+1) }, false},
		{"the most calls", func(p *PublicRank) { p.Engine.Calls = make([]collective.Snapshot, MaxCalls) }, true},
		{"a call more", func(p *PublicRank) { p.Engine.Calls = make([]collective.Snapshot, MaxCalls+1) }, false},
		{"the most programs", func(p *PublicRank) { p.Programs = make([]PublicProgram, MaxPrograms) }, true},
		{"a program more", func(p *PublicRank) { p.Programs = make([]PublicProgram, MaxPrograms+1) }, false},
		{"the last rank", func(p *PublicRank) { p.Engine.Peers = []PublicPeer{{Rank: ranks - 1}} }, true},
		{"a rank more", func(p *PublicRank) { p.Engine.Peers = []PublicPeer{{Rank: ranks}} }, false},
		{"the first rank", func(p *PublicRank) { p.Engine.Calls = []collective.Snapshot{{Root: new(0)}} }, true},
		{"a rank before it", func(p *PublicRank) { p.Engine.Calls = []collective.Snapshot{{Root: new(-1)}} }, false},
		{"of another rank", func(p *PublicRank) { p.Rank = 8 }, false},
		{"of another rank's engine", func(p *PublicRank) { p.Engine.Rank = 8 }, false},
	} {
		p := &PublicRank{Rank: 7, Engine: PublicEngine{Rank: 7}}
		if tt.change(p); (p.check(7, ranks) == nil) != tt.valid {
			t.Errorf("%s: %v", tt.name, p.check(7, ranks))
		}
	}
}

// TestCutShort checks that only the excess is omitted, and that an incomplete report is marked.
func TestCutShort(t *testing.T) {
	calls := func(n, waitsFor int) (calls []collective.Snapshot) {
		for range n {
			calls = append(calls, collective.Snapshot{Collective: "Bcast", WaitsFor: make([]int, waitsFor)})
		}
		return calls
	}
	for _, tt := range []struct {
		name string
		rank Rank
		cut  bool
	}{
		{"nothing", Rank{}, false},
		{"the most peers", Rank{Engine: Engine{Peers: make([]Peer, MaxPeers)}}, false},
		{"a peer more", Rank{Engine: Engine{Peers: make([]Peer, MaxPeers+1)}}, true},
		{"the most calls", Rank{Engine: Engine{Calls: calls(MaxCalls, MaxPeers)}}, false},
		{"a call more", Rank{Engine: Engine{Calls: calls(MaxCalls+1, 0)}}, true},
		{"a call for a rank more", Rank{Engine: Engine{Calls: calls(1, MaxPeers+1)}}, true},
		{"the most programs", Rank{RankInfo: RankInfo{Attached: make([]Program, MaxPrograms)}}, false},
		{"a program more", Rank{RankInfo: RankInfo{Attached: make([]Program, MaxPrograms+1)}}, true},
	} {
		p := PublicOf(&tt.rank)
		if p.CutShort != tt.cut || len(p.Engine.Peers) != min(len(tt.rank.Engine.Peers), MaxPeers) ||
			len(p.Engine.Calls) != min(len(tt.rank.Engine.Calls), MaxCalls) ||
			len(p.Programs) != min(len(tt.rank.Attached), MaxPrograms) {
			t.Errorf("%s: cut short %v; %d peers, %d calls, %d programs",
				tt.name, p.CutShort, len(p.Engine.Peers), len(p.Engine.Calls), len(p.Programs))
		}
	}
}

// TestWeight checks that peers are ordered by the waits that they have.
func TestWeight(t *testing.T) {
	for _, tt := range []struct {
		peer Peer
		want int
	}{
		{Peer{}, 0},
		{Peer{UnfinishedText: "a send is open"}, 0},
		{Peer{PacketsIn: 1}, 1},
		{Peer{LastDrop: new(Drop)}, 1},
		{Peer{NetworkError: "network is unreachable"}, 1},
		{Peer{Deferred: new(Deferred)}, 2},
		{Peer{UnansweredClear: new(Deferred)}, 2},
		{Peer{Unexpected: 1}, 2},
		{Peer{Unexpected: 1, PacketsIn: 1}, 2},
		{Peer{Sending: new(Wait)}, 3},
		{Peer{Receiving: new(Wait)}, 3},
		{Peer{Receiving: new(Wait), Unexpected: 1}, 3},
	} {
		if got := relevance(&tt.peer); got != tt.want {
			t.Errorf("%+v has weight %d, not %d", tt.peer, got, tt.want)
		}
	}
}

// FuzzDecode checks that no answer of a rank causes a panic or exceeds the bounds, and that a decoded report
// can be encoded again.
func FuzzDecode(f *testing.F) {
	f.Add(encoded(rankWith(0)))
	f.Add(encoded(rankWith(3)))
	f.Add(encoded(rankWith(100)))
	recorded, err := os.ReadFile("testdata/udp.report") // of a rank in a cycle of three
	if err != nil {
		f.Fatal(err)
	}
	if r, err := DecodePublic(recorded, 0, 3); err != nil || len(r.Engine.Peers) != 2 {
		f.Fatalf("%+v, %v", r, err)
	}
	f.Add(recorded)
	f.Fuzz(func(t *testing.T, text []byte) {
		r, err := DecodePublic(text, 0, 200)
		if err != nil {
			if r != nil || !errors.Is(err, ErrInvalid) {
				t.Fatalf("%v, %v", r, err)
			}
			// Most inputs are not valid DEFLATE: used as JSON they reach more code.
			if r, err = DecodePublic(deflate(string(text)), 0, 200); err != nil {
				return
			}
		}
		again, err := DecodePublic(r.Encode(), 0, 200)
		if err != nil {
			t.Fatalf("%v\n%+v", err, r)
		}
		for _, p := range again.Engine.Peers {
			if len(p.NetworkError) > MaxText || p.Rank <= 0 || p.Rank >= 200 {
				t.Fatalf("%+v", p)
			}
		}
		if _, err := json.Marshal(again); err != nil {
			t.Fatal(err)
		}
	})
}
