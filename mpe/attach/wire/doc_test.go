package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/mpe"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/op"
	"github.com/zrlmpi/zrlmpid/mpe/collective"
)

// The tests below compare the code with the tables of bytes in docs/attach.md.

func specification(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../../docs/attach.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// field is a row in a table of bytes. to is 0 if the field extends to the end of the frame.
type field struct {
	from, to int
	name     string
}

// fieldsOf returns the first table of bytes that follows a line beginning with heading.
func fieldsOf(t *testing.T, heading string) (fields []field) {
	t.Helper()
	row := regexp.MustCompile(`^\| (\d+)(?:–(\d+))?(…?) \| ([a-z]*) ?\|`)
	begun := false
	for _, sendQueue := range specification(t) {
		begun = begun || strings.HasPrefix(sendQueue, heading)
		m := row.FindStringSubmatch(sendQueue)
		if !begun || m == nil {
			if len(fields) > 0 {
				break
			}
			continue
		}
		from, _ := strconv.Atoi(m[1])
		f := field{from: from, to: from + 1, name: m[4]}
		if m[2] != "" {
			last, _ := strconv.Atoi(m[2])
			f.to = last + 1
		}
		if m[3] != "" {
			f.to = 0
		}
		fields = append(fields, f)
	}
	if len(fields) == 0 {
		t.Fatalf("no table after %q", heading)
	}
	for i, f := range fields[1:] {
		if fields[i].to != f.from {
			t.Errorf("%s: byte %d follows byte %d", heading, f.from, fields[i].to-1)
		}
	}
	return fields
}

func TestDocumentFields(t *testing.T) {
	le := func(n int, v uint64) string {
		b := Order.AppendUint64(nil, v)
		return string(b[:n])
	}
	status := mpe.Status{Peer: 0x51, Send: true, Bytes: 0x52, Words: 0x53, Comm: 0x54, Datatype: 1, Tag: 0x55,
		Phases: handshake.Phases{Start: 0x56, Request: 0x57, Clear: 0x58, Data: 0x59, Ack: 0x5a, Retransmissions: 0x5b}}
	failure := errors.Join(mpe.ErrRank)
	failed := encodeError(failure)
	abort := AbortFrame(0x61, mpe.ErrCancelled)
	c := Call{ID: 0x81, Collective: 0x82, Datatype: 1, Flags: 0x3f, Comm: 0x83, Tag: 0x84, Ranks: 0x85, Rank: 0x86,
		Root: 0x87, Op: 0x88, Type: 0x89, Name: 0x8a,
		Elem: 0x8b, Bytes: 0x8c, Segment: 0x8d, Length: 0x8e, Result: 0x8f}
	st := Start{ID: 0x31, Operation: mpe.Operation{Kind: mpe.OpRecv, Datatype: 1, AnyDatatype: true, Peer: 0x32,
		Tag: 0x33, Comm: 0x34}, Length: 0x35}
	ended := Done{ID: 0x50, Found: true, Stored: 0x4f, Status: status, Err: failure}
	for _, tt := range []struct {
		heading string
		frame   []byte
		values  map[string]string
	}{
		{"## Frame", AppendHeader(nil, FrameDone, 0x1234),
			map[string]string{"length": le(4, 0x1234), "frame": "\x07", "": "\x00\x00\x00", "body": ""}},
		{"**HELLO**", HelloFrame(Hello{Version: 0x11, Rank: -1, Flags: 0x12})[FrameHeaderLen:], map[string]string{
			"magic": magic, "version": le(4, 0x11), "rank": "\xff\xff\xff\xff", "flags": le(4, 0x12)}},
		{"**WELCOME**", AppendWelcome(nil,
			Welcome{Version: 0x21, Rank: 0x22, Size: 0x23, Chunk: 0x24, Limits: Limits{0x25, 0x26},
				Flags: FlagOversubscribed, Ring: 0x27, HasArena: true, Arena: 0x28})[FrameHeaderLen:], map[string]string{
			"version": le(4, 0x21), "rank": le(4, 0x22), "size": le(4, 0x23), "chunk": le(4, 0x24),
			"operations": le(4, 0x25), "flags": le(4, 1), "payload": le(8, 0x26), "ring": le(8, 0x27),
			"arena": le(8, 0x28)}},
		{"**PEER**", AppendPeer(nil, 0x41,
			mpe.PeerInfo{Profile: "p", Kind: "ki", Address: "adr", SmallTags: true, NoEmpty: true})[FrameHeaderLen:],
			map[string]string{
				"rank": le(4, 0x41), "flags": le(4, 1<<2|1<<5), "texts": "\x01p\x02ki\x03adr"}},
		{"**REFUSED**", RefusedFrame(NewRefusal(Busy, "text"))[FrameHeaderLen:],
			map[string]string{"reason": le(2, 4), "text": "text"}},
		{"**START**", append(AppendStart(nil, &st, 2), "ab"...)[FrameHeaderLen:], map[string]string{
			"id": le(8, 0x31), "kind": "\x03", "datatype": "\x01", "flags": "\x01", "": "\x00", "peer": le(4, 0x32),
			"tag": le(4, 0x33), "comm": le(4, 0x34), "length": le(8, 0x35), "payload": "ab"}},
		{"**DATA**", append(AppendID(nil, FrameData, 0x36, 2), "ab"...)[FrameHeaderLen:],
			map[string]string{"id": le(8, 0x36), "payload": "ab"}},
		{"**DONE**", AppendDone(nil, &ended, 0)[FrameHeaderLen : FrameHeaderLen+DoneLen], map[string]string{
			"id": le(8, 0x50), "flags": "\x03", "": "", "error": le(4, uint64(len(failed))), "stored": le(8, 0x4f),
			"peer": le(4, 0x51), "datatype": "\x01", "send": "\x01",
			"tag": le(4, 0x55), "comm": le(4, 0x54), "bytes": le(8, 0x52), "words": le(4, 0x53),
			"retransmissions": le(4, 0x5b),
			"start":           le(8, 0x56), "request": le(8, 0x57), "clear": le(8, 0x58), "data": le(8, 0x59),
			"ack": le(8, 0x5a)}},
		{"**CANCEL**", abort[FrameHeaderLen:],
			map[string]string{"id": le(8, 0x61), "set": le(8, 1<<6), "text": mpe.ErrCancelled.Error()}},
		{"**PROBE**", AppendProbe(nil,
			&Start{ID: 0x71, Operation: mpe.Operation{Peer: 0x72, Tag: 0x73, Comm: 0x74}, Claim: true,
				Wait: true})[FrameHeaderLen:], map[string]string{
			"id": le(8, 0x71), "flags": "\x03", "": "\x00\x00\x00", "source": le(4, 0x72), "tag": le(4, 0x73),
			"comm": le(4, 0x74)}},
		{"**CALL**", append(AppendCall(nil, &c, 2), "ab"...)[FrameHeaderLen:], map[string]string{
			"id": le(8, 0x81), "collective": "\x82", "datatype": "\x01", "flags": le(2, 0x3f), "comm": le(4, 0x83),
			"tag": le(4, 0x84), "ranks": le(4, 0x85),
			"rank": le(4, 0x86), "root": le(4, 0x87), "operation": "\x88", "type": "\x89", "name": "\x8a", "": "\x00",
			"element": le(4, 0x8b),
			"bytes":   le(8, 0x8c), "segment": le(8, 0x8d), "length": le(8, 0x8e), "result": le(8, 0x8f),
			"payload": "ab"}},
		{"The fields of REDUCE:", append(AppendID(nil, FrameReduce, 0x91, 4), "abcd"...)[FrameHeaderLen:],
			map[string]string{"id": le(8, 0x91), "operands": "abcd"}},
		{"The fields of REDUCED:", append(AppendReduced(nil, 0x92, true, 2), "ab"...)[FrameHeaderLen:],
			map[string]string{"id": le(8, 0x92), "flags": "\x01", "": "", "result": "ab"}},
		{"## Errors", failed, map[string]string{"set": le(8, 2), "length": le(4, uint64(len(failure.Error()))),
			"text": failure.Error()}},
	} {
		for _, f := range fieldsOf(t, tt.heading) {
			to := f.to
			if to == 0 {
				to = len(tt.frame)
			}
			if to > len(tt.frame) {
				t.Fatalf("%s: %s ends at %d, the frame at %d", tt.heading, f.name, to, len(tt.frame))
			}
			got := tt.frame[f.from:to]
			want, ok := tt.values[f.name]
			if f.name == "" {
				want = string(make([]byte, len(got)))
			}
			if !ok || string(got) != want {
				t.Errorf("%s: bytes %d to %d are %x, and not %q = %x", tt.heading, f.from, to-1, got, f.name, want)
			}
			if f.name != "" {
				delete(tt.values, f.name)
			}
		}
		if delete(tt.values, ""); len(tt.values) > 0 {
			t.Errorf("%s: the table does not have %q", tt.heading, tt.values)
		}
	}
}

// rows returns the names in the table with the given head. A row has one or more pairs of a number and a name,
// followed by other columns. The numbers must be consecutive, starting with first.
func rows(t *testing.T, head string, first int) (names []string) {
	t.Helper()
	begun := false
	for n, sendQueue := range specification(t) {
		cells := strings.Split(sendQueue, "|")
		switch {
		case sendQueue == head:
			begun = true
		case !begun || strings.HasPrefix(sendQueue, "|---"):
		case len(cells) < 4:
			return names
		default:
			for i := 1; i+1 < len(cells); i += 2 {
				number, err := strconv.Atoi(strings.TrimSpace(cells[i]))
				if err != nil && i > 1 {
					break
				}
				if err != nil || number != first+len(names) {
					t.Errorf("line %d: number %s, want %d", n+1, cells[i], first+len(names))
				}
				names = append(names, strings.Trim(cells[i+1], " `"))
			}
		}
	}
	t.Errorf("no table %q", head)
	return names
}

func TestDocumentNumbers(t *testing.T) {
	frames := rows(t, "| kind | frame | from | says |", 1)
	for i, name := range frames {
		if FrameType(i+1).String() != name {
			t.Errorf("frame %d is %v, and not %s", i+1, FrameType(i+1), name)
		}
	}
	reasons := rows(t, "| reason | name | |", 1)
	for i, name := range reasons {
		if Reason(i+1).String() != name {
			t.Errorf("reason %d is %v, and not %s", i+1, Reason(i+1), name)
		}
	}
	errs := rows(t, "| bit | error | bit | error | bit | error |", 0)
	for i, name := range errs {
		if i >= len(sentinels) || sentinels[i].name != name {
			t.Errorf("bit %d is not %s", i, name)
		}
	}
	if len(frames) != int(numFrames)-1 || len(reasons) != int(numReasons)-1 || len(errs) != len(sentinels) {
		t.Errorf("%d frames, %d reasons, %d errors", len(frames), len(reasons), len(errs))
	}
}

// numbered returns a list of names in the form used by the document.
func numbered[T interface {
	~uint8
	String() string
}](first, last T) string {
	var names []string
	for n := first; n <= last; n++ {
		names = append(names, fmt.Sprintf("%d %v", n, n))
	}
	return strings.Join(names, ", ")
}

// TestDocumentRings compares the layout of the rings with the document.
func TestDocumentRings(t *testing.T) {
	const n = MinRing
	mem := make([]byte, MemoryLen(n))
	addr := func(p unsafe.Pointer) int { return int(uintptr(p) - uintptr(unsafe.Pointer(&mem[0]))) }
	first, second := RingOf(mem, 0, n), RingOf(mem, 1, n)
	if len(first.Data) != n || len(second.Data) != n || addr(unsafe.Pointer(&first.Data[0])) != 4096 ||
		addr(unsafe.Pointer(&second.Data[0])) != 4096+n {
		t.Error("the rings are elsewhere")
	}
	text := strings.Join(specification(t), "\n")
	for i, at := range []struct {
		name     string
		one, two unsafe.Pointer
		length   int
	}{
		{"written", unsafe.Pointer(first.Written), unsafe.Pointer(second.Written), 8},
		{"read", unsafe.Pointer(first.Read), unsafe.Pointer(second.Read), 8},
		{"reader sleeps", unsafe.Pointer(first.ReaderSleeps), unsafe.Pointer(second.ReaderSleeps), 4},
		{"writer sleeps", unsafe.Pointer(first.WriterSleeps), unsafe.Pointer(second.WriterSleeps), 4},
		{"processor", unsafe.Pointer(first.Processor), unsafe.Pointer(second.Processor), 4},
		{"awaited", unsafe.Pointer(first.Awaited), unsafe.Pointer(second.Awaited), len(Awaited{}) * 8},
	} {
		begin := addr(at.one)
		if row := fmt.Sprintf("| %d–%d | %s |", begin, begin+at.length-1, at.name); begin+2048 != addr(at.two) ||
			!strings.Contains(text, row) {
			t.Errorf("%d: it is at %d and %d, and there is no row %q", i, begin, addr(at.two), row)
		}
	}
	for _, want := range []string{
		fmt.Sprintf("`ring` is a power of two, at least %d and at most %d.", MinRing, maxRing),
		fmt.Sprintf("it is %d MiB for each program", (2*RingLen+ArenaLen)>>20),
		fmt.Sprintf("`arena` is at most %d.", int64(maxArena)),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not say %q", want)
		}
	}
}

func TestDocumentSizes(t *testing.T) {
	text := strings.Join(specification(t), "\n")
	for _, want := range []string{
		fmt.Sprintf("at most `%d` |\n", MaxBody),
		fmt.Sprintf("in bytes: `%d` |\n", ChunkLen),
		fmt.Sprintf("1 to `%d` bytes", ChunkLen),
		fmt.Sprintf("have at most %d bytes", OperandLen),
		fmt.Sprintf("of each at most `%d` bytes", OperandLen),
		fmt.Sprintf("at most %d bytes", MaxText),
		fmt.Sprintf("as its tag, communicator %d,", uint32(mpe.ClaimComm)),
		fmt.Sprintf("1 to %d.", 1<<31-1),
		fmt.Sprintf("version of the protocol is `%d`", Version),
		numbered(coll.Barrier, coll.Exscan),
		numbered(op.Sum, op.MinLoc),
		numbered(op.Int8, op.Complex128),
		numbered(op.Int16Loc, op.Float64Loc),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the document does not say %q", want)
		}
	}
	all := encodeError(errors.Join(&coll.CallError{}, &collective.CallFailedError{},
		&collective.StepError{Err: collective.ErrMismatch}, &mpe.WaitError{}, &mpe.TruncatedError{},
		&handshake.TruncatedError{}, &handshake.TimeoutError{}, &handshake.PartialError{}, &handshake.RemoteError{},
		&handshake.DeadEndError{Cause: handshake.ErrPartial}, &handshake.RestartError{}))
	js := all[12+Order.Uint32(all[8:]):]
	var members map[string]json.RawMessage
	if err := json.Unmarshal(js, &members); err != nil || len(members) != 11 {
		t.Fatalf("%v: %s", err, js)
	}
	for name := range members {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the document does not have the detail %s", name)
		}
	}
}
