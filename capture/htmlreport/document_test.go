package htmlreport

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
)

var start = time.Unix(1_700_000_000, 0)

// steps returns steps that are a millisecond apart. "again" and "copy" apply to the step that follows.
func steps(types ...string) []capture.Step {
	var list []capture.Step
	for i, typ := range types {
		name, repeated := strings.CutSuffix(typ, " again")
		at := start.Add(time.Duration(i) * time.Millisecond)
		list = append(list, capture.Step{
			Packet: int64(i + 1), Packets: 1, Time: at, End: at, Type: name, Retransmitted: repeated,
			FromSender: name == "SEND_REQUEST" || name == "DATA",
		})
	}
	return list
}

func describe(list []step) string {
	var out []string
	for _, s := range list {
		text := s.Type
		for flag, name := range map[byte]string{flagRetransmitted: "retransmitted", flagDuplicate: "duplicate",
			flagLost: "lost", flagMissing: "missing"} {
			if s.flags&flag != 0 {
				text += " " + name
			}
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

func TestDrawnPackets(t *testing.T) {
	known := 0.001
	for _, c := range []struct {
		name    string
		message capture.Message
		copies  []int64
		want    string
	}{
		{"whole", capture.Message{Verdict: "ok", Steps: steps("SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK")}, nil,
			"SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK"},
		{"retransmitted", capture.Message{Verdict: "retransmitted",
			Steps: steps("SEND_REQUEST", "SEND_REQUEST again", "CLEAR_TO_SEND")}, nil,
			"SEND_REQUEST, SEND_REQUEST retransmitted, CLEAR_TO_SEND"},
		{"copied", capture.Message{Verdict: "ok", Steps: steps("SEND_REQUEST", "SEND_REQUEST again", "CLEAR_TO_SEND")},
			[]int64{2}, "SEND_REQUEST, SEND_REQUEST duplicate, CLEAR_TO_SEND"},
		{"lost", capture.Message{Verdict: "CLEAR_TO_SEND lost",
			Steps: steps("SEND_REQUEST", "CLEAR_TO_SEND", "SEND_REQUEST again", "CLEAR_TO_SEND again")}, nil,
			"SEND_REQUEST, CLEAR_TO_SEND lost, SEND_REQUEST retransmitted, CLEAR_TO_SEND retransmitted"},
		{"not recorded between",
			capture.Message{Verdict: "CLEAR_TO_SEND lost", Steps: steps("SEND_REQUEST", "DATA", "ACK")}, nil,
			"SEND_REQUEST, CLEAR_TO_SEND missing, DATA, ACK"},
		{"not recorded at the beginning",
			capture.Message{Verdict: "SEND_REQUEST and CLEAR_TO_SEND lost", Steps: steps("DATA", "ACK")}, nil,
			"SEND_REQUEST missing, CLEAR_TO_SEND missing, DATA, ACK"},
		{"not recorded at the end",
			capture.Message{Verdict: "ACK lost", Steps: steps("SEND_REQUEST", "CLEAR_TO_SEND", "DATA")}, nil,
			"SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK missing"},
		{"data or its ACK", capture.Message{Verdict: "DATA or its ACK lost",
			Steps: steps("SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "DATA again", "ACK")}, nil,
			"SEND_REQUEST, CLEAR_TO_SEND, DATA lost, DATA retransmitted, ACK"},
		{"not kept", capture.Message{Verdict: "DATA lost", Phases: capture.Phases{DataToAck: &known},
			Steps: steps("SEND_REQUEST", "CLEAR_TO_SEND")}, nil, "SEND_REQUEST, CLEAR_TO_SEND"},
		{"no steps", capture.Message{Verdict: "ACK lost"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			copies := map[int64]bool{}
			for _, p := range c.copies {
				copies[p] = true
			}
			list := drawnSteps(&c.message, copies)
			if got := describe(list); got != c.want {
				t.Errorf("drawn as\n%s, want\n%s", got, c.want)
			}
			if !slices.IsSortedFunc(list, func(a, b step) int { return a.Time.Compare(b.Time) }) {
				t.Error("the steps are not in the order of time")
			}
			for _, s := range list {
				if fromSender := s.Type == "SEND_REQUEST" ||
					s.Type == "DATA"; s.flags&flagFromSender != 0 != fromSender {
					t.Errorf("%s goes the wrong way", s.Type)
				}
			}
		})
	}
}

func TestOpenWaits(t *testing.T) {
	data := steps("SEND_REQUEST", "CLEAR_TO_SEND", "DATA")
	r := &capture.Report{
		Start:    start,
		Messages: []capture.Message{{ID: 1, Steps: data}, {ID: 2, Steps: data}, {ID: 3}, {ID: 4, Steps: data}},
		Findings: []capture.Finding{
			{Kind: capture.Deadlock, Messages: []int64{1, 2}, Waits: []capture.Wait{
				{Message: 1, Rank: 4, Peer: 7, PacketType: "CLEAR_TO_SEND", Since: start},
				{Message: 2, Rank: 7, Peer: 4, PacketType: "DATA", Since: start.Add(time.Millisecond)},
			}},
			// not drawn
			{Kind: capture.StillWaiting, Messages: []int64{3},
				Waits: []capture.Wait{{Message: 3, Rank: 1, Peer: 2, PacketType: "ACK", Since: start}}},
			// not listed
			{Kind: capture.StillWaiting, Messages: []int64{9},
				Waits: []capture.Wait{{Message: 9, Rank: 1, Peer: 2, PacketType: "ACK", Since: start}}},
			{Kind: capture.LostPacket, Messages: []int64{4}},
		},
	}
	want := []openWait{{1, 4, 7, "CLEAR_TO_SEND", 0}, {2, 7, 4, "DATA", int64(time.Millisecond)}}
	if got := openWaits(r); !slices.Equal(got, want) {
		t.Errorf("waits %+v, want %+v", got, want)
	}
}

func TestColumns(t *testing.T) {
	clear := 0.001
	list := steps("SEND_REQUEST", "CLEAR_TO_SEND", "BARRIER")
	r := &capture.Report{Start: start, Messages: []capture.Message{
		{ID: 5, Src: 2, Dst: 3, Call: "SEND_INT", Verdict: "ok", Start: 0,
			Phases: capture.Phases{RequestToClear: &clear}, Steps: list},
		{ID: 9, Src: 3, Dst: 2, Call: "SEND_FLOAT", Verdict: "ok", Start: 0.5, Complete: true, Retransmissions: 2},
	}}
	d := newDocument(r)
	m, s := &d.Messages, &d.Steps
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"id", m.ID, []int64{5, 4}},
		{"start", m.Start, []int64{0, 500_000_000}},
		{"call", m.Call, []int{0, 1}},
		{"verdict", m.Verdict, []int{0, 0}},
		{"request to clear", m.Phases[0], []int64{1_000_000, noTime}},
		{"total", m.Phases[3], []int64{noTime, noTime}},
		{"steps", m.Steps, []int{3, 0}},
		{"step times", s.Time, []int64{0, 1_000_000, 1_000_000}},
		{"packets", s.Packet, []int64{1, 1, 1}},
		{"types", s.Types, []string{"SEND_REQUEST", "CLEAR_TO_SEND", "DATA", "ACK", "BARRIER"}},
		{"type", s.Type, digits{0, 1, 4}},
	} {
		if got, want := fmt.Sprint(c.got), fmt.Sprint(c.want); got != want {
			t.Errorf("%s: %s, want %s", c.name, got, want)
		}
	}
	if got, err := s.Flags.MarshalJSON(); err != nil || string(got) != `"100"` {
		t.Errorf("flags are %s, %v", got, err)
	}
	if got, err := m.Complete.MarshalJSON(); err != nil || string(got) != `"01"` {
		t.Errorf("complete is %s, %v", got, err)
	}
}

func TestPlaceWithLimit(t *testing.T) {
	var list []string
	for i, want := range []int{0, 1, 2, 2, 2} {
		if got := indexOrAppend(&list, fmt.Sprint("type ", i), 3); got != want {
			t.Errorf("text %d has place %d, want %d", i, got, want)
		}
	}
	if len(list) != 3 {
		t.Errorf("%d texts are kept", len(list))
	}
}
