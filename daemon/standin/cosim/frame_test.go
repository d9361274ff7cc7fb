package cosim

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestFrames(t *testing.T) {
	hello := Hello{Version: Version, FIFO: 4096}
	b := AppendHello(nil, hello)
	typ, n, err := ParseHead(b)
	if err != nil || typ != TypeHello || n != len(b)-HeadLen {
		t.Fatalf("head of a hello: %v, %d, %v", typ, n, err)
	}
	if got, err := ParseHello(b[HeadLen:]); err != nil || got != hello {
		t.Errorf("hello %+v, %v", got, err)
	}
	start := Start{Rank: 1, Size: 2, Stall: 30, Seed: 1 << 40}
	if got, err := ParseStart(AppendStart(nil, start)[HeadLen:]); err != nil || got != start {
		t.Errorf("start %+v, %v", got, err)
	}
	step := Step{Cycles: 1, Budget: 2, Calls: 1, Lines: 3, StopWhenDrained: true, Records: []Record{
		{Data: 1 << 63, Keep: 0x0f, Last: true, Kind: KindIn}, {Data: 1, Keep: 1, Kind: KindFeedback},
	}}
	var gotStep Step
	if err := ParseStep(AppendStep(nil, BoundaryRole, &step)[HeadLen:], BoundaryRole, &gotStep); err != nil ||
		!reflect.DeepEqual(step, gotStep) {
		t.Errorf("step %+v, %v", gotStep, err)
	}
	result := Result{Cycle: 9, TCP: idleStreams,
		StreamState: StreamState{Lines: 4, Feedbacks: 1, StalledSince: [numKinds]uint64{9, Never, 0, 1}}, Records: []Record{
			{Data: 2, CycleOffset: 7, Keep: 1, Kind: KindCall}, {Data: 3, CycleOffset: 8, Keep: 0xff, Last: true, Kind: KindOut},
			{CycleOffset: 8, Kind: KindIn, Rule: RuleDefined},
		}}
	var gotResult Result
	if err := ParseResult(AppendResult(nil, BoundaryRole, &result)[HeadLen:], BoundaryRole, &gotResult); err != nil ||
		!reflect.DeepEqual(result, gotResult) {
		t.Errorf("answer %+v, %v", gotResult, err)
	}
	network := Hello{Version: Version, FIFO: MinNetworkFIFO, Boundary: BoundaryNetwork}
	if got, err := ParseHello(AppendHello(nil, network)[HeadLen:]); err != nil || got != network {
		t.Errorf("hello %+v, %v", got, err)
	}
	ports := Result{Cycle: 9, TCP: idleStreams, StreamState: StreamState{StalledSince: never},
		Records: []Record{{Data: 1, CycleOffset: 2, Kind: KindPorts}}}
	if err := ParseResult(AppendResult(nil, BoundaryNetwork, &ports)[HeadLen:], BoundaryNetwork,
		&gotResult); err != nil || !reflect.DeepEqual(ports, gotResult) {
		t.Errorf("answer %+v, %v", gotResult, err)
	}
	tcp := Step{Cycles: 1, Calls: 2, Lines: 3, TCPCalls: 4, TCPLines: 5,
		Records: []Record{{Data: 1, Kind: KindTCP + KindInMeta}, {Data: 2, Kind: KindIn}}}
	if err := ParseStep(AppendStep(nil, BoundaryTCP, &tcp)[HeadLen:], BoundaryTCP, &gotStep); err != nil ||
		!reflect.DeepEqual(tcp, gotStep) {
		t.Errorf("step %+v, %v", gotStep, err)
	}
	both := Result{Cycle: 9, StreamState: StreamState{Lines: 1, StalledSince: never},
		TCP: StreamState{Lines: 2, Feedbacks: 3, StalledSince: [numKinds]uint64{1, 2, 3, Never}}, Records: []Record{
			{Data: 1, CycleOffset: 2, Kind: KindTCP + KindPorts}, {Data: 1, CycleOffset: 3, Kind: KindTCP + KindOutData},
			{Data: 1, CycleOffset: 3, Kind: KindOutMeta},
		}}
	if err := ParseResult(AppendResult(nil, BoundaryTCP, &both)[HeadLen:], BoundaryTCP, &gotResult); err != nil ||
		!reflect.DeepEqual(both, gotResult) {
		t.Errorf("answer %+v, %v", gotResult, err)
	}
}

// TestFrameBytes checks that frames are encoded as docs/cosim.md and the shim in C specify.
func TestFrameBytes(t *testing.T) {
	want := []byte{
		4, 0, 0, 0, 64, 0, 0, 0,
		1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0,
		0, 0, 0,
		4, 0, 0, 0, 5, 0, 0, 0, 1, 0, 0, 0, 6, 0, 0, 0,
	}
	got := AppendResult(nil, BoundaryRole,
		&Result{Cycle: 1, StreamState: StreamState{Lines: 2, Feedbacks: 3, StalledSince: [numKinds]uint64{Never, 1, 0, 1}},
			Records: []Record{
				{Data: 5<<32 | 4, CycleOffset: 1, Keep: 6},
			}})
	if !bytes.Equal(got, want) {
		t.Errorf("answer\n% x, want\n% x", got, want)
	}
}

func TestFramesRefused(t *testing.T) {
	hello := AppendHello(nil, Hello{Version: Version, FIFO: 1})[HeadLen:]
	result := AppendResult(nil, BoundaryRole,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: [numKinds]uint64{Never, Never, Never, Never}},
			Records: []Record{{Kind: KindOut}}})[HeadLen:]
	step := AppendStep(nil, BoundaryRole, &Step{Records: []Record{{Kind: KindIn}}})[HeadLen:]
	changed := func(b []byte, at int, to byte) []byte {
		b = bytes.Clone(b)
		b[at] = to
		return b
	}
	parse := func(b []byte) error { return ParseResult(b, BoundaryRole, new(Result)) }
	refused := map[string]error{
		"short head":          second(ParseHead([]byte{1, 0, 0})),
		"head with flags":     second(ParseHead([]byte{1, 1, 0, 0, 0, 0, 0, 0})),
		"huge body":           second(ParseHead([]byte{4, 0, 0, 0, 255, 255, 255, 255})),
		"short hello":         second2(ParseHello(hello[:15])),
		"magic":               second2(ParseHello(changed(hello, 0, 0))),
		"no space":            second2(ParseHello(changed(hello, 8, 0))),
		"another boundary":    second2(ParseHello(changed(hello, 12, 3))),
		"space for no packet": second2(ParseHello(changed(hello, 12, 1))),
		"ports of a role":     parse(changed(result, len(result)-2, byte(KindPorts))),
		"no space with TCP":   second2(ParseHello(changed(hello, 12, 2))),
		"TCP of UDP only":     ParseResult(changed(result, len(result)-2, byte(KindTCP)), BoundaryNetwork, new(Result)),
		"short with TCP":      ParseResult(result[:resultLen], BoundaryTCP, new(Result)),
		"another stream":      parse(changed(result, len(result)-2, 64)),
		"short answer":        parse(result[:resultLen-1]),
		"part of a record":    parse(result[:len(result)-1]),
		"record to the role":  parse(changed(result, len(result)-2, byte(KindIn))),
		"last of 2":           parse(changed(result, len(result)-3, 2)),
		"no such rule":        parse(changed(result, len(result)-1, byte(numRules))),
		"rule of ports": ParseResult(changed(changed(result, len(result)-2, byte(KindPorts)), len(result)-1, 1),
			BoundaryNetwork, new(Result)),
		"rule of a step": ParseStep(changed(step, len(step)-1, byte(RuleDefined)), BoundaryRole, new(Step)),
		"ready stable":   parse(changed(changed(result, len(result)-2, byte(KindIn)), len(result)-1, byte(RuleStable))),
	}
	// With cycle 6 instead of Never, seven other bytes differ as well.
	late := bytes.Clone(result)
	copy(late[16:], []byte{6, 0, 0, 0, 0, 0, 0, 0})
	refused["later than now"] = parse(late)
	lateTCP := AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never},
			TCP: StreamState{StalledSince: [numKinds]uint64{Never, Never, 6, Never}}})[HeadLen:]
	refused["later than now on TCP"] = ParseResult(lateTCP, BoundaryTCP, new(Result))
	for name, err := range refused {
		if !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := ParseHello(changed(hello, 4, 1))
	if v, ok := errors.AsType[*VersionError](err); !ok || v.Got != 1 ||
		!strings.Contains(err.Error(), "zrlctl cosim new") {
		t.Errorf("other version: %v", err)
	}
}

func second(_ Type, _ int, err error) error { return err }
func second2(_ Hello, err error) error      { return err }

// FuzzFrames checks that any frame of a simulator is either rejected or encoded to the same bytes again.
func FuzzFrames(f *testing.F) {
	f.Add(AppendHello(nil, Hello{Version: Version, FIFO: 7}))
	f.Add(AppendResult(nil, BoundaryRole,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: [numKinds]uint64{5, Never, 0, 1}},
			Records: []Record{{Data: 1, Kind: KindCall}}}))
	f.Add(AppendResult(nil, BoundaryTCP,
		&Result{Cycle: 5, StreamState: StreamState{StalledSince: never}, TCP: StreamState{StalledSince: never},
			Records: []Record{{Data: 1, Kind: KindTCP + KindPorts}}}))
	f.Add(AppendStep(nil, BoundaryRole, &Step{Records: []Record{{Data: 1, Kind: KindIn}}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		typ, n, err := ParseHead(b)
		if err != nil || n != len(b)-HeadLen {
			return
		}
		var again []byte
		body := b[HeadLen:]
		switch typ {
		case TypeHello:
			h, err := ParseHello(body)
			if err != nil {
				return
			}
			again = AppendHello(nil, h)
		case TypeResult:
			var s Result
			if ParseResult(body, BoundaryNetwork, &s) != nil {
				return
			}
			again = AppendResult(nil, BoundaryRole, &s)
		default:
			return
		}
		if !bytes.Equal(again, b) {
			t.Errorf("% x is taken as % x", b, again)
		}
	})
}
