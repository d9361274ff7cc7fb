package perfetto

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/capturetest"
	"github.com/zrlmpi/zrlmpid/protocol"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

// analysis returns the report for a recording of deployed nodes.
func analysis(t *testing.T, name string) *capture.Report {
	t.Helper()
	src, err := capture.Options{}.OpenFile(filepath.Join("..", "testdata", "captures", name+".pcap"))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	a := capture.NewAnalysis(name, capture.AnalysisOptions{KeepMessages: 1000})
	if err := a.Analyze(src); err != nil {
		t.Fatal(err)
	}
	return a.Report()
}

// TestGolden compares a trace, as bytes and in decoded form, with the expected files.
func TestGolden(t *testing.T) {
	for _, name := range []string{"ref_ring3_347", "loss_fpga_ack_lost"} {
		var trace bytes.Buffer
		if err := Write(&trace, analysis(t, name)); err != nil {
			t.Fatal(err)
		}
		golden(t, name, trace.Bytes())
	}
}

// TestNesting: the slices of a track are nested, arrows have two ends, and counters end at 0. This holds even if
// messages overlap, have zero duration, or are open.
func TestNesting(t *testing.T) {
	s := func(v float64) *float64 { return &v }
	r := &capture.Report{Findings: []capture.Finding{{Kind: capture.StillWaiting, Text: "rank 0 waits", Time: 3}}}
	r.Summary.Seconds = 3
	for id, m := range []capture.Message{
		{Src: 0, Dst: 1, Start: 1, Words: 5, Complete: true,
			Phases: capture.Phases{RequestToClear: s(0.5), ClearToData: s(0), DataToAck: s(0.5), Total: s(1)}},
		{Src: 0, Dst: 1, Start: 1.25, Words: 5, Complete: true, Phases: capture.Phases{Total: s(0.25)}},
		{Src: 0, Dst: 1, Start: 2, Words: 5, Complete: true, Phases: capture.Phases{RequestToClear: s(0)}},
		{Src: 1, Dst: 0, Start: 0.5, Words: 7},
	} {
		m.ID = int64(id + 1)
		r.Messages = append(r.Messages, m)
	}
	var trace bytes.Buffer
	if err := Write(&trace, r); err != nil {
		t.Fatal(err)
	}
	open, flows, counters := map[uint64][]string{}, map[uint64]int{}, map[uint64]int64{}
	last := uint64(0)
	for _, p := range packets(t, trace.Bytes()) {
		if p.event == nil {
			continue
		}
		if p.at < last {
			t.Errorf("an event of %d after one of %d", p.at, last)
		}
		last = p.at
		switch p.event.kind {
		case typeBegin:
			open[p.event.track] = append(open[p.event.track], p.event.name)
			if p.event.flow != 0 {
				flows[p.event.flow]++
			}
		case typeEnd:
			if n := len(open[p.event.track]); n == 0 {
				t.Fatalf("track %d: a slice ends that has not begun", p.event.track)
			} else if open[p.event.track] = open[p.event.track][:n-1]; n > 2 {
				t.Errorf("track %d: %d slices in each other", p.event.track, n)
			}
		case typeCounter:
			counters[p.event.track] = p.event.value
		}
	}
	for track, names := range open {
		if len(names) > 0 {
			t.Errorf("track %d: %q have not ended", track, names)
		}
	}
	for id := range r.Messages {
		if n := flows[uint64(id+1)]; n != 2 {
			t.Errorf("message %d: %d ends of an arrow", id+1, n)
		}
	}
	for track, value := range counters {
		if value != 0 {
			t.Errorf("counter %d ends at %d", track, value)
		}
	}
	if len(counters) != 4 || last != 3e9 {
		t.Errorf("%d counters, the last event at %d", len(counters), last)
	}
}

// TestWithoutAck: a message without an ACK ends when its pair continues, so that the messages of a pair share a track.
func TestWithoutAck(t *testing.T) {
	c := capturetest.New(capturetest.Ethernet)
	const messages = 20
	for i := range messages {
		c.AddMessage(time.Unix(1700000000+int64(i), 0), capturetest.Message{
			Src: 0, Dst: 1, Words: 3, Shape: protocol.CPUShape(),
			From: netip.MustParseAddrPort("10.0.0.1:2718"), To: netip.MustParseAddrPort("10.0.0.2:2718"),
		})
		c.Drop(len(c.Packets)) // the ACK
	}
	src, err := capture.Options{}.NewReader(bytes.NewReader(c.Pcap(capturetest.Format{})), "test")
	if err != nil {
		t.Fatal(err)
	}
	a := capture.NewAnalysis("test", capture.AnalysisOptions{KeepMessages: messages})
	if err := a.Analyze(src); err != nil {
		t.Fatal(err)
	}
	r := a.Report()
	if len(r.Messages) != messages || r.Messages[0].Complete {
		t.Fatalf("%d messages, the first is %+v", len(r.Messages), r.Messages[0])
	}
	var trace bytes.Buffer
	if err := Write(&trace, r); err != nil {
		t.Fatal(err)
	}
	tracks := map[string]bool{}
	for _, p := range packets(t, trace.Bytes()) {
		if strings.Contains(p.name, "to rank") || strings.Contains(p.name, "from rank") {
			tracks[p.name] = true
		}
	}
	if len(tracks) != 2 { // one of the sender and one of the receiver
		t.Errorf("%d tracks: %v", len(tracks), slices.Sorted(maps.Keys(tracks)))
	}
}

// broken is a writer that fails.
type broken struct{}

var errBroken = errors.New("broken")

func (broken) Write([]byte) (int, error) { return 0, errBroken }

func TestWriteError(t *testing.T) {
	r := &capture.Report{Messages: []capture.Message{{ID: 1, Src: 0, Dst: 1}}}
	if err := Write(broken{}, r); !errors.Is(err, errBroken) {
		t.Error(err)
	}
}

// packet is a decoded packet of a trace: an event, or the name of a track.
type packet struct {
	at    uint64
	event *event
	name  string
}

// fields calls visit for each field of a message.
func fields(t *testing.T, b []byte, visit func(n protowire.Number, v uint64, text []byte)) {
	t.Helper()
	for len(b) > 0 {
		n, typ, used := protowire.ConsumeTag(b)
		if used < 0 {
			t.Fatal(protowire.ParseError(used))
		}
		b = b[used:]
		var v uint64
		var text []byte
		switch typ {
		case protowire.VarintType:
			v, used = protowire.ConsumeVarint(b)
		case protowire.Fixed64Type:
			v, used = protowire.ConsumeFixed64(b)
		default:
			text, used = protowire.ConsumeBytes(b)
		}
		if used < 0 {
			t.Fatal(protowire.ParseError(used))
		}
		b = b[used:]
		visit(n, v, text)
	}
}

func packets(t *testing.T, trace []byte) (list []packet) {
	t.Helper()
	fields(t, trace, func(_ protowire.Number, _ uint64, body []byte) {
		var p packet
		fields(t, body, func(n protowire.Number, v uint64, part []byte) {
			switch n {
			case packetTimestamp:
				p.at = v
			case packetTrack:
				p.name = track(t, part)
			case packetEvent:
				p.event = &event{}
				fields(t, part, func(n protowire.Number, v uint64, text []byte) {
					switch n {
					case eventType:
						p.event.kind = v
					case eventTrack:
						p.event.track = v
					case eventName:
						p.event.name = string(text)
					case eventFlow:
						p.event.flow = v
					case eventCounter:
						p.event.value = int64(v)
					}
				})
			}
		})
		list = append(list, p)
	})
	return list
}

// track describes a track.
func track(t *testing.T, b []byte) string {
	t.Helper()
	var uuid, parent uint64
	name, kind := "", "track"
	fields(t, b, func(n protowire.Number, v uint64, text []byte) {
		switch n {
		case trackUUID:
			uuid = v
		case trackParent:
			parent = v
		case trackName:
			name = string(text)
		case trackCounter:
			kind = "counter"
		case trackProcess:
			kind = "process"
			fields(t, text, func(n protowire.Number, v uint64, text []byte) {
				if n == processName {
					name += string(text)
				} else {
					name = fmt.Sprintf("%d ", v)
				}
			})
		}
	})
	return fmt.Sprintf("%s %d in %d: %s", kind, uuid, parent, name)
}

// text returns a trace in readable form.
func text(t *testing.T, trace []byte) string {
	t.Helper()
	var b strings.Builder
	for _, p := range packets(t, trace) {
		switch e := p.event; {
		case e == nil:
			fmt.Fprintln(&b, p.name)
		case e.kind == typeCounter:
			fmt.Fprintf(&b, "%12d track %d = %d\n", p.at, e.track, e.value)
		case e.kind == typeEnd:
			fmt.Fprintf(&b, "%12d track %d ends\n", p.at, e.track)
		default:
			fmt.Fprintf(&b, "%12d track %d: %s, arrow %d\n", p.at, e.track, e.name, e.flow)
		}
	}
	return b.String()
}

// golden compares a trace and its readable form with files.
func golden(t *testing.T, name string, trace []byte) {
	t.Helper()
	for suffix, got := range map[string][]byte{".perfetto": trace, ".txt": []byte(text(t, trace))} {
		file := filepath.Join("testdata", name+suffix)
		if *rewrite {
			if err := os.WriteFile(file, got, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if want, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s has changed (%v); go test ./capture/perfetto -rewrite", file, err)
		}
	}
}
