package capture

import (
	"bytes"
	"errors"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// unanswered returns a SEND_REQUEST and one retransmission.
func unanswered() []pcapng.Unit {
	request := protocol.CloudFPGA.Append(nil, protocol.Header{Dst: 1, Type: protocol.SendRequest})
	units := make([]pcapng.Unit, 2)
	for i := range units {
		units[i] = pcapng.Unit{
			Packet: int64(i + 1), Time: noon.Add(time.Duration(i) * 100 * time.Millisecond), Proto: pcapng.UDP,
			Src: addrA, Dst: addrB, Data: request,
			Comments: []string{"of the rank"},
		}
	}
	return units
}

// write returns a file with the given units.
func write(t *testing.T, units []pcapng.Unit, o pcapng.WriterOptions, end *pcapng.EndRecord) []byte {
	t.Helper()
	var b bytes.Buffer
	w := pcapng.NewWriter(&b, o)
	for i := range units {
		if err := w.WriteUnit(&units[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.WriteEnd(end)
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// unitsOf returns the units of a file that may be truncated.
func unitsOf(t *testing.T, file []byte) []pcapng.Unit {
	t.Helper()
	units, _, err := readAll(t, Options{}, file)
	if _, cut := errors.AsType[*TruncatedError](err); err != io.EOF && !cut && len(file) > 0 {
		t.Fatal(err)
	}
	return units
}

// TestCommentsAreReadBack: the comments on a file and on its packets can be read back, and so can the end of the
// recording.
func TestCommentsAreReadBack(t *testing.T) {
	end := &pcapng.EndRecord{Time: noon.Add(time.Minute), LostPackets: 3, Comments: []string{"the end"}}
	units := unanswered()
	units[1].Comments = append(units[1].Comments, "another\x1b[2J", strings.Repeat("long ", 100))
	for i := range units {
		// In files written by zrlmpid, packets on all ports are read.
		units[i].Src, units[i].Dst = netip.AddrPortFrom(addrA.Addr(), 40000), netip.AddrPortFrom(addrB.Addr(), 40001)
	}
	file := write(t, units, pcapng.WriterOptions{Comment: "what it is", SnapLength: 100}, end)
	src, err := Options{}.NewReader(bytes.NewReader(file), "test")
	if err != nil {
		t.Fatal(err)
	}
	var got [][]string
	var u pcapng.Unit
	for src.Next(&u) == nil {
		got = append(got, slices.Clone(u.Comments))
	}
	s := src.Stats()
	if len(got) != 2 || !slices.Equal(got[0], []string{"of the rank"}) ||
		!slices.Equal(got[1], []string{"of the rank", "another[2J", strings.Repeat("long ", 100)}) ||
		s.Comment != "what it is" || !s.End.Equal(end.Time) || s.Skipped[SkipKernelDrops] != 3 {
		t.Errorf("%q, %+v", got, s)
	}
	// If a file is truncated within the comments on a packet, the packet can still be read.
	cut := file[:bytes.LastIndex(file, []byte("long "))]
	if n := len(unitsOf(t, cut)); n != 2 {
		t.Errorf("cut off in a comment, the file has %d packets", n)
	}
}

// TestLongUnits: a piece of a stream that does not fit in one packet is written and read back completely. A datagram
// that does not fit is an error.
func TestLongUnits(t *testing.T) {
	from, to := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.2:2")
	data := bytes.Repeat([]byte("0123456789"), 14_000)
	var file bytes.Buffer
	w := pcapng.NewWriter(&file, pcapng.WriterOptions{})
	sent := pcapng.Unit{Time: time.Unix(1, 0), Src: from, Dst: to, Proto: pcapng.TCP, Data: data,
		Comments: []string{"one"}}
	if err := w.WriteUnit(&sent); err != nil {
		t.Fatal(err)
	}
	sent.Proto = pcapng.UDP
	if err := w.WriteUnit(&sent); err == nil {
		t.Error("a datagram of 140,000 bytes was written")
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	src, err := Options{}.NewReader(&file, "recording")
	if err != nil {
		t.Fatal(err)
	}
	var got []byte
	var comments []string
	for u := (pcapng.Unit{}); src.Next(&u) == nil; {
		got, comments = append(got, u.Data...), append(comments, u.Comments...)
	}
	if !bytes.Equal(got, data) || len(comments) != 1 {
		t.Errorf("%d of %d bytes were read, with %q", len(got), len(data), comments)
	}
}

// TestAnnotate: each packet that a finding names gets the finding as a comment. Waits last until the end of the
// recording.
func TestAnnotate(t *testing.T) {
	units := unanswered()
	found := Annotate(units, noon.Add(5*time.Second), protocol.CloudFPGA)
	if len(found) != 1 || found[0].Kind != NeverCleared ||
		!strings.Contains(found[0].Text, "has waited 5s for CLEAR_TO_SEND") {
		t.Fatalf("%+v", found)
	}
	for i := range units {
		if want := []string{"of the rank", "never_cleared: " + found[0].Text}; !slices.Equal(units[i].Comments, want) {
			t.Errorf("packet %d: %q, want %q", i+1, units[i].Comments, want)
		}
	}
}

// growing is a source that calls look before it returns the next unit, and ends with err.
type growing struct {
	units []pcapng.Unit
	look  func()
	err   error
}

func (g *growing) Next(u *pcapng.Unit) error {
	g.look()
	if len(g.units) == 0 {
		return g.err
	}
	*u, g.units = g.units[0], g.units[1:]
	return nil
}

func (g *growing) Stats() Stats { return Stats{} }
func (g *growing) Close() error { return nil }

// TestCopyAnnotated: each packet is written before the next one arrives. A finding becomes a comment on the packet that
// revealed it, or on the end of the recording, whatever error ends the source.
func TestCopyAnnotated(t *testing.T) {
	broken := errors.New("broken")
	for _, end := range []error{io.EOF, broken} {
		var out bytes.Buffer
		var written []int
		units := unanswered()
		copied := units[1] // soon enough to count as a duplicate
		copied.Time = copied.Time.Add(time.Millisecond)
		src := &growing{units: append(units, copied), err: end}
		src.look = func() { written = append(written, len(unitsOf(t, out.Bytes()))) }
		err := CopyAnnotated(&out, pcapng.WriterOptions{}, func(Options) (Source, error) { return src, nil },
			protocol.CloudFPGA)
		if (end == broken) != errors.Is(err, broken) || (end == io.EOF) != (err == nil) {
			t.Errorf("after %v: %v", end, err)
		}
		if !slices.Equal(written, []int{0, 1, 2, 3}) {
			t.Errorf("written when the next one came: %v", written)
		}
		read := unitsOf(t, out.Bytes())
		if last := read[2].Comments; len(last) != 2 || !strings.HasPrefix(last[1], "duplicate_packet: ") ||
			!strings.HasSuffix(last[1], "(packets 3)") {
			t.Errorf("the comments of the duplicate are %q", last)
		}
		if !bytes.Contains(out.Bytes(), []byte("never_cleared: rank 0 has waited")) {
			t.Error("the wait at the end is not in the file")
		}
	}
}
