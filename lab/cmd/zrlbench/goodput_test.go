package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/testkit/needs"
	"github.com/zrlmpi/zrlmpid/lab/goodput"
)

// TestGoodput measures each side briefly over an emulated path.
func TestGoodput(t *testing.T) {
	const what = "zrlbench goodput"
	needs.Root(t, what, "can create network namespaces and TUN devices")
	needs.Program(t, what, "ip", "iproute2")
	file := filepath.Join(t.TempDir(), "out.json")
	code, out, errs := zrlbench(t, "goodput", "loss", "intact", "--quick", "--rtt", "2", "--loss", "1", "--save", file)
	if code != exitOK {
		t.Fatalf("exit code %d\n%s%s", code, out, errs)
	}
	for _, want := range []string{"2 ms, 1 %, MTU 1500  ", "extended-udp  5.1 ", " MB, all verified; "} {
		if !strings.Contains(out, want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}
	if !strings.Contains(errs, "round 1 of 1: loss, 2 ms, 1 %, MTU 1500\n") {
		t.Errorf("no progress is reported: %s", errs)
	}
	if code, again, _ := zrlbench(t, "goodput", "show", file); code != exitOK || again != out {
		t.Errorf("show prints something else: %d\n%s\n%s", code, again, out)
	}
	if code, markdown, _ := zrlbench(t, "goodput", "show", file, "--markdown"); code != exitOK ||
		!strings.Contains(markdown, "| 2 ms, 1 %, MTU 1500 | ") {
		t.Errorf("%d\n%s", code, markdown)
	}
	var r goodput.Report
	code, text, _ := zrlbench(t, "goodput", "show", file, "--json")
	if code != exitOK || json.Unmarshal([]byte(text), &r) != nil || len(r.Cells) != 2 {
		t.Fatalf("%d\n%s", code, text)
	}
	for _, run := range r.Cells[0].Runs {
		if len(run.Rounds) != 1 || run.Rounds[0].Flows[0].Bytes == 0 || run.Rounds[0].Path.Directions[0].Packets == 0 {
			t.Errorf("%+v", run)
		}
	}
}

func TestGoodputMistakes(t *testing.T) {
	for _, x := range []struct {
		args string
		code int
		says string
	}{
		{"lose", exitUsage, `there is no part "lose"; there are loss, mtu, reorder, shares, intact`},
		{"loss loss", exitUsage, "loss is named twice"},
		{"--only tcp", exitUsage, `there is no side "tcp"; there are tcp-cubic, extended-udp, extended-tcp`},
		{"intact --only tcp-cubic", exitUsage, "none of the sides is in any of the parts"},
		{"--rounds 0", exitUsage, "--rounds 0: give at least 1"},
		{"--rtt -1", exitUsage, "round trip of -1ms: give 0s to 10s"},
		{"--loss 101", exitUsage, "101 % of the packets: give 0 to 100"},
		{"--mtu 100", exitUsage, "MTU of 100 bytes: give 576 to 65535"},
		{"show", exitUsage, "requires at least 1 arg"},
		{"show " + filepath.Join(t.TempDir(), "none.json"), exitFailure, "no such file"},
	} {
		code, _, errs := zrlbench(t, append([]string{"goodput"}, strings.Fields(x.args)...)...)
		if code != x.code || !strings.Contains(errs, x.says) {
			t.Errorf("%s: exit code %d, %s", x.args, code, errs)
		}
	}
}
