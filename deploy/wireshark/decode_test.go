package wireshark_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	// zrlctl decode depends on this package. The import makes go test run again when the package changes.
	_ "github.com/zrlmpi/zrlmpid/capture"
)

// The dissector and `zrlctl decode` are two programs in two languages. They must agree.

// decoded is a line of `zrlctl decode --json`.
type decoded struct {
	Packet                                   int
	Kind, Type, Call, Reason                 string
	SrcRank                                  *int `json:"src"`
	DstRank                                  *int `json:"dst"`
	Size, Tag, Offset, Bytes, Padding, Total *int
	Message                                  int
	DataPacket                               int `json:"data_packet"`
	Complete, Retransmitted, Duplicate       bool
	Extended                                 *struct {
		Number, Acknowledged, Message, Length, Offset, Payload int
	}
}

// zrlctl builds the program once.
var zrlctl = sync.OnceValues(func() (string, error) {
	path := filepath.Join(buildDir, "zrlctl")
	out, err := exec.Command("go", "build", "-o", path, "../../cmd/zrlctl").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("building zrlctl: %w\n%s", err, out)
	}
	return path, nil
})

func decode(t *testing.T, file string, args ...string) (lines []decoded) {
	t.Helper()
	sources, err := filepath.Glob("../../cmd/zrlctl/*.go")
	if err != nil || len(sources) == 0 {
		t.Fatalf("no sources of zrlctl: %v", err)
	}
	for _, source := range sources {
		track(t, source)
	}
	program, err := zrlctl()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program, append([]string{"decode", "--json", file}, args...)...).Output()
	if err != nil {
		t.Fatalf("zrlctl decode %s: %v\n%s", file, err, out)
	}
	for dec := json.NewDecoder(bytes.NewReader(out)); dec.More(); {
		var line decoded
		if err := dec.Decode(&line); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, line)
	}
	return lines
}

// number formats a field of decode's output. It returns "" for nil.
func number(n *int) string {
	if n == nil {
		return ""
	}
	return strconv.Itoa(*n)
}

func positive(n int) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n)
}

var types = map[string]string{"1": "SEND_REQUEST", "2": "CLEAR_TO_SEND", "3": "DATA", "4": "ACK", "5": "ERROR"}
var calls = map[string]string{"0": "SEND_INT", "1": "RECV_INT", "2": "SEND_FLOAT", "3": "RECV_FLOAT", "4": "BARRIER"}

// disagreements compares the frame of a single datagram with the line that decode prints for it.
func disagreements(t *testing.T, f frame, d decoded) (list []string) {
	t.Helper()
	compare := func(name, dissector, decode string) {
		if dissector != decode {
			list = append(list, fmt.Sprintf("%s is %q here and %q there", name, dissector, decode))
		}
	}
	compare("type", types[f.one(t, "zrlmpi.type")], d.Type)
	compare("call", calls[f.one(t, "zrlmpi.call")], d.Call)
	for field, value := range map[string]string{
		"src_rank": number(d.SrcRank), "dst_rank": number(d.DstRank), "size": number(d.Size), "tag": number(d.Tag),
		"message": positive(d.Message), "data.offset": number(d.Offset), "data.bytes": number(d.Bytes),
		"data.padding": number(d.Padding), "data.total": number(d.Total),
	} {
		compare(field, f.one(t, "zrlmpi."+field), value)
	}
	if d.DataPacket != 0 {
		compare("data.frame", f.one(t, "zrlmpi.data.frame"), strconv.Itoa(d.DataPacket))
	}
	if complete := f.one(t, "zrlmpi.data.complete"); complete != "" || d.Complete {
		compare("data.complete", complete, map[bool]string{true: "1", false: "0"}[d.Complete])
	}
	seen := strings.Join(f.experts(), " ")
	for name, there := range map[string]bool{
		"retransmitted_packet": d.Retransmitted, "duplicate_packet": d.Duplicate, "stale_header": d.Reason == "stale",
		"unexpected_payload": d.Reason == "unexpected_payload",
		"reserved_byte":      d.Reason == "reserved", "size_mismatch": d.Reason == "length", "gap": d.Reason == "gap",
	} {
		if strings.Contains(seen, name) != there {
			list = append(list, fmt.Sprintf("%s is %v there", name, there))
		}
	}
	return list
}

func TestDecodeSaysTheSame(t *testing.T) {
	t.Parallel()
	for _, file := range captures(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			frames := dissect(t, file)
			lines := decode(t, file)
			if len(frames) != len(lines) {
				t.Fatalf("%d frames, but decode prints %d lines", len(frames), len(lines))
			}
			for i, f := range frames {
				if lines[i].Packet != i+1 {
					t.Fatalf("line %d is of packet %d", i+1, lines[i].Packet)
				}
				for _, d := range disagreements(t, f, lines[i]) {
					t.Errorf("frame %d, %s: %s", i+1, f.one(t, "_ws.col.Info"), d)
				}
			}
		})
	}
}
