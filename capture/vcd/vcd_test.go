package vcd

import (
	"bytes"
	"errors"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"
)

// packets is in the order of a recording, which differs slightly from the order of cycles.
var packets = []Packet{
	{2, false, "1:SEND_REQUEST:0>1"},
	{2, true, "2:CLEAR_TO_SEND:1>0"},
	{2, true, "4:DATA:1>0"},
	{1, false, "3:DATA:0>1"},
	{9, true, "5:ACK:1>0"},
}

func written(t *testing.T, waves io.Reader, period uint64) string {
	t.Helper()
	var out bytes.Buffer
	if err := Write(&out, waves, period, packets); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestWrite(t *testing.T) {
	const waves = "$version\n#5 $end\n$timescale 1ps $end\n$scope module TOP $end\n$var wire 1 # clk $end\n$upscope " +
		"$end\n$enddefinitions $end\n" +
		"#0\n0#\n#5\n1#\n#10\n0#\n#25\n1#\n#2"
	const want = "$version\n#5 $end\n$timescale 1ps $end\n$scope module TOP $end\n$var wire 1 # clk " +
		"$end\n$upscope $end\n" +
		"$scope module zrlmpi $end\n$var string 1 zrlmpi_sent sent $end\n$var string 1 zrlmpi_received received " +
		"$end\n$upscope $end\n$enddefinitions $end\n" +
		"#0\n0#\n#5\n1#\n#10\ns3:DATA:0>1 zrlmpi_received\n#10\n0#\n" +
		"#20\ns2:CLEAR_TO_SEND:1>0,4:DATA:1>0 zrlmpi_sent\ns1:SEND_REQUEST:0>1 zrlmpi_received\n#25\n1#\n#90\ns5:ACK:1>0 zrlmpi_sent\n"
	if got := written(t, strings.NewReader(waves), 10); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := written(t, iotest.OneByteReader(strings.NewReader(waves)), 10); got != want {
		t.Errorf("byte by byte:\n%s", got)
	}
}

// A line longer than any buffer is copied, and its contents are not parsed as times.
func TestLongLine(t *testing.T) {
	long := strings.Repeat("#7", 100_000)
	got := written(t, strings.NewReader("$enddefinitions $end\n#0\nb"+long+" !\n#100\n"), 10)
	if !strings.Contains(got, "\nb"+long+" !\n#10\n") {
		t.Error("the line is not there")
	}
}

func TestErrors(t *testing.T) {
	broken := errors.New("broken")
	for name, tt := range map[string]struct {
		waves  io.Reader
		cycle  uint64
		want   error
		phrase string
	}{
		"GHDL's own format": {strings.NewReader("GHDLwave\n\x01\n"), 1, ErrFormat, "begins with"},
		"cut off":           {strings.NewReader("$timescale 1ps $end\n"), 1, ErrFormat, "has no $enddefinitions"},
		"empty":             {strings.NewReader(""), 1, ErrFormat, "has no $enddefinitions"},
		"a time": {strings.NewReader("$enddefinitions $end\n#1\n#one\n"), 1, ErrFormat,
			`line 3: not a value change dump (VCD): "#one"`},
		"unreadable": {iotest.ErrReader(broken), 1, broken, "waves: "},
		"a cycle":    {strings.NewReader("$enddefinitions $end\n"), math.MaxInt64/10 + 1, nil, "too great"},
	} {
		err := Write(io.Discard, tt.waves, 10, []Packet{{Cycle: tt.cycle}})
		if err == nil || tt.want != nil && !errors.Is(err, tt.want) || !strings.Contains(err.Error(), tt.phrase) {
			t.Errorf("%s: %v", name, err)
		}
	}
	full := &limited{}
	if err := Write(full, strings.NewReader("$enddefinitions $end\n"), 10, packets); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a full disk: %v", err)
	}
}

// limited is a writer that accepts no bytes.
type limited struct{}

func (*limited) Write([]byte) (int, error) { return 0, io.ErrShortWrite }
