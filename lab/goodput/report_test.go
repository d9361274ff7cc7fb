package goodput

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/lab/bench"
	"github.com/zrlmpi/zrlmpid/lab/path"
)

// round returns a round in which flows had the given goodputs in MB/s.
func round(megabytes ...float64) Round {
	r := Round{Path: path.Use{CPU: 7}}
	r.Path.Directions[0] = path.Traffic{QueueMean: 3, QueueP99: 19.5, LateP99: 105}
	for _, mb := range megabytes {
		r.Flows = append(r.Flows, Flow{Bytes: int64(mb * 1e6), Seconds: 1})
	}
	return r
}

// seeded sets the seeds of rounds to 0, 1, 2 and so on.
func seeded(rounds ...Round) []Round {
	for i := range rounds {
		rounds[i].Seed = i
	}
	return rounds
}

// TestRatio checks that sides are compared separately for each seed.
func TestRatio(t *testing.T) {
	for _, tt := range []struct {
		name       string
		ours, base []Round
		want       float64
		ok         bool
	}{
		{"nothing", nil, nil, 0, false},
		{"one side", seeded(round(1)), nil, 0, false},
		{"no seed of both", seeded(round(1), round(1))[1:], seeded(round(1)), 0, false},
		{"the median of the ratios", seeded(round(10), round(1), round(3)), seeded(round(10), round(2), round(2)), 1,
			true},
		{"of the seeds of both", seeded(round(10), round(1)), seeded(round(20), round(2), round(9)), 0.5, true},
		{"rounds of the same seed", append(seeded(round(1)), seeded(round(3))...), seeded(round(4)), 0.5, true},
		{"nothing was received", seeded(round(1)), seeded(round(0)), 0, false},
	} {
		c := Cell{Runs: []Measured{{Flows: []string{tcpCubic}, Rounds: tt.base},
			{Flows: []string{extendedUDP}, Rounds: tt.ours}}}
		if got, ok := c.ratio(extendedUDP); got != tt.want || ok != tt.ok {
			t.Errorf("%s: %v, %v; want %v, %v", tt.name, got, ok, tt.want, tt.ok)
		}
	}
}

func testReport() *Report {
	single := func(side string, rounds ...Round) Measured {
		return Measured{Flows: []string{side}, Rounds: seeded(rounds...)}
	}
	return &Report{
		Machine: bench.Machine{CPU: "Abacus", Cores: 2, System: "Linux 6", Go: "go1", Version: "v1", Time: "today"},
		Failed:  []string{"shares: it fails"},
		Cells: []Cell{
			{Part: partLoss, RTT: 20, MTU: 1500, Runs: []Measured{
				single(tcpCubic, round(9), round(10), round(12)), single(extendedUDP, round(12), round(10), round(2)),
				single(extendedTCP, round(10)),
			}},
			{Part: partLoss, RTT: 20, Loss: 1, MTU: 1500, Runs: []Measured{
				single(tcpCubic, round(2), round(2)), single(extendedUDP, round(1)), single(extendedTCP),
			}},
			{Part: partReorder, RTT: 20, MTU: 1500, Reorder: 5, Late: 2,
				Runs: []Measured{single(extendedUDP, round(1))}},
			{Part: partShares, RTT: 20, MTU: 1500,
				Runs: []Measured{{Flows: []string{extendedUDP, tcpCubic}, Rounds: []Round{round(9, 3)}}}},
			{Part: partIntact, RTT: 20, Loss: 0.1, MTU: 1500, Reorder: 1, Duplicate: 1, Late: 2,
				Runs: []Measured{single(extendedUDP, round(100))}},
		},
	}
}

func TestPrint(t *testing.T) {
	var b strings.Builder
	if err := testReport().Print(&b, true); err != nil {
		t.Fatal(err)
	}
	want := `**Goodput in MB/s (10⁶ bytes), and as a multiple of TCP CUBIC's, by round trip and loss**

| path | tcp-cubic | extended-udp | ÷ tcp-cubic | extended-tcp | ÷ tcp-cubic | queue of tcp-cubic, ms | queue of extended-udp, ms | queue of extended-tcp, ms |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 20 ms, 0 %, MTU 1500 | 10 | 10 | 1.00 | 10 | 1.11 | 3.0 / 19.5 | 3.0 / 19.5 | 3.0 / 19.5 |
| 20 ms, 1 %, MTU 1500 | 2 | 1 | 0.50 | – | – | 3.0 / 19.5 | 3.0 / 19.5 | – / – |

**With reordering and duplicates**

| path | tcp-cubic | extended-udp | ÷ tcp-cubic | extended-tcp | ÷ tcp-cubic | queue of tcp-cubic, ms | queue of extended-udp, ms | queue of extended-tcp, ms |
| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |
| 20 ms, 0 %, MTU 1500, reorder 5 % | – | 1 | – | – | – | – / – | 3.0 / 19.5 | – / – |

**Two flows at once: MB/s of each, and the share of the first**

| path | flows | first | second | share | queue, ms |
| --- | ---: | ---: | ---: | ---: | ---: |
| 20 ms, 0 %, MTU 1500 | extended-udp + tcp-cubic | 9 | 3 | 0.75 | 3.0 / 19.5 |

**A transfer with an end: every byte as it was sent**

| path | side | MB | s | MB/s | queue, ms |
| --- | ---: | ---: | ---: | ---: | ---: |
| 20 ms, 0.1 %, MTU 1500, reorder 1 %, duplicate 1 % | extended-udp | 100.0 | 1 | 100 | 3.0 / 19.5 |

- median of 3 rounds, all sides in turn; today
- 2 × Abacus, Linux 6, go1, zrlmpid v1
- 183 MB, all verified; the emulator took at most 7 % of a processor, and 99 % of its packets were at most 105 µs late
- *** FAILED: shares: it fails ***
`
	if b.String() != want {
		t.Errorf("%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := testReport().Print(&b, false); err != nil ||
		!strings.Contains(b.String(), "\n20 ms, 1 %, MTU 1500  2          1             0.50         –") {
		t.Errorf("%s, %v", b.String(), err)
	}
}

// TestLoad checks that Load returns the report that Save wrote, and that it merges the rounds in several files.
func TestLoad(t *testing.T) {
	one, two := filepath.Join(t.TempDir(), "1.json"), filepath.Join(t.TempDir(), "2.json")
	r := testReport()
	if err := r.Save(one); err != nil {
		t.Fatal(err)
	}
	r.Cells[1].Runs[2].Rounds = []Round{round(7)} // all other rounds are unchanged
	r.Cells[2].Runs[0].Flows = []string{extendedTCP}
	r.Cells = append(r.Cells,
		Cell{Part: partMTU, RTT: 20, MTU: 9000,
			Runs: []Measured{{Flows: []string{tcpCubic}, Rounds: []Round{round(5)}}}})
	if err := r.Save(two); err != nil {
		t.Fatal(err)
	}
	var a, b bytes.Buffer
	again, err := Load(one)
	if err != nil || testReport().WriteJSON(&a) != nil || again.WriteJSON(&b) != nil || a.String() != b.String() {
		t.Errorf("%v\n%s\n%s", err, a.String(), b.String())
	}
	both, err := Load(one, two)
	if err != nil || len(both.Cells) != 6 || len(both.Failed) != 2 || len(both.Cells[0].Runs[0].Rounds) != 6 ||
		len(both.Cells[1].Runs[2].Rounds) != 1 || len(both.Cells[2].Runs) != 2 {
		t.Errorf("%+v, %v", both, err)
	}
	bad := filepath.Join(t.TempDir(), "bad.json")
	for text, says := range map[string]string{"{": "unexpected end", "{}": "there are no cells"} {
		if err := os.WriteFile(bad, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(bad); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Load(one, bad+".none"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
	if err := both.Err(); err == nil || err.Error() != "failed: shares: it fails\nfailed: shares: it fails" {
		t.Error(err)
	}
}

// TestCells checks the numbers of cells and runs, and how long they take.
func TestCells(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		n    int // cells
		runs int // of flows
		time time.Duration
	}{
		{"everything", Options{}, 12 + 2 + 2 + 1 + 1, 3*16 + 4 + 1,
			3*16*cellTime + 3*3*lossyTrips*(2+20+100)*time.Millisecond + 4*sharesTime},
		{"a check", Options{Quick: true}, 2 + 1 + 2 + 1 + 1, 3*5 + 4 + 1, 15*quickTime + 4*quickTime},
		{"one side", Options{Only: []string{extendedUDP}, Parts: []string{partLoss, partShares}, RTTs: []float64{5}}, 5,
			5, 4*cellTime + 3*lossyTrips*5*time.Millisecond + sharesTime},
		{"a transfer", Options{Parts: []string{partIntact}}, 1, 1, 0},
	} {
		if err := tt.o.setDefaults(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		cells := tt.o.selectCells()
		runs, sum := 0, time.Duration(0)
		for i := range cells {
			c := &cells[i]
			if c.byteLimit == 0 {
				sum += c.duration * time.Duration(len(c.Runs))
			}
			runs += len(c.Runs)
			if c.byteLimit > 0 && c.byteLimit < messageWindow*messageLen {
				t.Errorf("%s: %v: a transfer of less than a window", tt.name, c)
			}
			if err := c.config(0).Check(); err != nil {
				t.Errorf("%s: %v: %v", tt.name, c, err)
			}
			for k := range cells[:i] {
				if c.hasSamePath(&cells[k]) {
					t.Errorf("%s: %v is listed twice", tt.name, c)
				}
			}
		}
		if len(cells) != tt.n || runs != tt.runs || sum != tt.time {
			t.Errorf("%s: %d cells, %d runs, %v; want %d, %d, %v", tt.name, len(cells), runs, sum, tt.n, tt.runs,
				tt.time)
		}
	}
}
