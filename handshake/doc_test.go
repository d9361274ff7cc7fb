package handshake_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/handshake"
)

// docs/ZRLMPI_protocol.md describes this package correctly.

func specification(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// rows returns the table rows whose first cell matches, as trimmed cells.
func rows(text, first string) (found [][]string) {
	re := regexp.MustCompile(`^` + first + `$`)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if len(line) < 2 || line[0] != '|' || line[len(line)-1] != '|' {
			continue
		}
		cells := strings.Split(line[1:len(line)-1], "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if re.MatchString(cells[0]) {
			found = append(found, cells)
		}
	}
	return found
}

func TestDocumentNamesReasonsAndEvents(t *testing.T) {
	text := specification(t)
	wantRow := func(name string) {
		if n := len(rows(text, "`"+name+"`")); n != 1 {
			t.Errorf("%d table rows begin with %s, want 1", n, name)
		}
	}
	for r := handshake.ReasonNone + 1; int(r) < handshake.NumReasons; r++ {
		wantRow(r.String())
	}
	for e := handshake.Event(1); int(e) < handshake.NumEvents; e++ {
		wantRow(e.String())
	}
}

// testsIn returns the names of the tests in the files that match a pattern.
func testsIn(t *testing.T, pattern string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			names[m[1]] = true
		}
	}
	return names
}

func TestDocumentNamesTestsThatExist(t *testing.T) {
	text := specification(t)
	packages := map[string]map[string]bool{
		"node.":     testsIn(t, "../node/*_test.go"),
		"cpumodel.": testsIn(t, "../handshake/cpumodel/*_test.go"),
		"":          testsIn(t, "*_test.go"),
		"mpemodel.": testsIn(t, "../handshake/mpemodel/*_test.go"),
		"protocol.": testsIn(t, "../protocol/*_test.go"),
	}
	mentioned := map[string]bool{}
	for _, m := range regexp.MustCompile("`(\\w+\\.)?(Test\\w+)`").FindAllStringSubmatch(text, -1) {
		if !packages[m[1]][m[2]] {
			t.Errorf("there is no test %s%s", m[1], m[2])
		}
		if m[1] == "" {
			mentioned[m[2]] = true
		}
	}
	var numbers [19]bool
	numbers[18] = packages["node."]["TestPaceTowardsDeployedNodes"] // not a matter of the handshake
	for name := range testsIn(t, "traps*_test.go") {
		if !mentioned[name] {
			t.Errorf("%s is not mentioned", name)
		}
		n, err := strconv.Atoi(name[len("TestTrap"):][:2])
		if err != nil || n < 1 || n >= len(numbers) {
			t.Fatalf("%s shows no trap", name)
		}
		numbers[n] = true
		// The row of its trap names the test.
		if r := rows(text, `\*\*Trap `+strconv.Itoa(n)+`\*\*`); len(r) != 1 ||
			!strings.Contains(strings.Join(r[0], " "), name) {
			t.Errorf("%s does not stand in the row of trap %d", name, n)
		}
	}
	if i := slices.Index(numbers[1:], false); i >= 0 {
		t.Errorf("trap %d has no test", i+1)
	}
}

// Tables of timeouts: when packets are retransmitted, and when an operation times out.
func TestDocumentTimeouts(t *testing.T) {
	timings := map[string]handshake.Timing{
		"deployed CPU library":  handshake.DeployedCPU(),
		"deployed FPGA, rank 0": handshake.DeployedFPGA(0),
		"deployed FPGA, rank 1": handshake.DeployedFPGA(1),
		"ours, to `fpga`":       handshake.DefaultTiming(handshake.FPGAPeer(1)),
		"ours, to `cpu`":        handshake.DefaultTiming(handshake.CPUPeer()),
		"ours, to `software`":   handshake.DefaultTiming(handshake.SoftwarePeer()),
	}
	seconds := func(d, never time.Duration, none string) string {
		if d == never {
			return none
		}
		return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
	}
	text := specification(t)
	for _, name := range slices.Sorted(maps.Keys(timings)) {
		tm := timings[name]
		got := map[string][]string{}
		for _, r := range rows(text, regexp.QuoteMeta(name)) {
			got[r[1]] = r[2:]
		}
		for wait, w := range map[string]struct {
			b        handshake.Backoff
			deadline time.Duration
		}{
			"CLEAR_TO_SEND": {tm.Clear, tm.ClearDeadline},
			"ACK":           {tm.Ack, tm.AckDeadline},
			"DATA":          {tm.Data, tm.DataDeadline},
		} {
			var at time.Duration
			var times []string
			for n := range w.b.Retransmissions {
				at += w.b.First + time.Duration(n)*w.b.Step
				times = append(times, seconds(at, -1, ""))
			}
			want := []string{strings.Join(times, ", "), seconds(w.b.Interval, 0, "never"), seconds(w.deadline, 0, "none")}
			if wait == "ACK" && (name == "ours, to `fpga`" || name == "ours, to `cpu`") {
				want[0] = "when asked (P14)"
			}
			if !slices.Equal(got[wait], want) {
				t.Errorf("%s, waiting for %s: the document has %q, want %q", name, wait, got[wait], want)
			}
		}
		if tm.FragmentGap != 50*time.Millisecond {
			t.Errorf("%s: the gap is %v, but the document says 50 ms", name, tm.FragmentGap)
		}
	}
}
