package capture

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxComments is how many comments of findings a recording gets at most; there may be a finding for each packet.
const maxComments = 10000

// comment returns a finding as a comment of a packet.
func (f *Finding) comment() string { return fmt.Sprintf("%s: %s", f.Kind, f.Text) }

// Annotate analyses a recording whose units are packets, from packet 1 on, and adds each finding to the comments of the
// packets that it names. The recording ended at end, or with its last unit if that is zero. It returns the findings, in
// the order in which they were found.
func Annotate(units []pcapng.Unit, end time.Time, profile protocol.Profile) []Finding {
	var findings []Finding
	comments := 0
	t := NewTracker(TrackerOptions{Profile: profile, OnFinding: func(f *Finding) {
		if len(findings) < maxFindings {
			findings = append(findings, *f)
		}
		for _, packet := range f.Packets {
			if i := packet - 1; i >= 0 && i < int64(len(units)) && comments < maxComments {
				units[i].Comments = append(units[i].Comments, f.comment())
				comments++
			}
		}
	}})
	for i := range units {
		u := units[i] // which following takes apart
		u.Packet = int64(i + 1)
		t.Unit(&u)
	}
	t.EndAt(end)
	t.Finish()
	return findings
}

// CopyAnnotated writes a source to a file while the source grows, each packet when it comes, and each finding as a comment of the packet
// that shows it, with the numbers of the others; what is found at the end, as a comment of the end. It ends with the source, whose error
// it returns unless that is io.EOF. open makes the source with the given options.
func CopyAnnotated(out io.Writer, o pcapng.WriterOptions, open func(Options) (Source, error), profile protocol.Profile) error {
	var found []string
	t := NewTracker(TrackerOptions{Profile: profile, OnFinding: func(f *Finding) {
		text := f.comment()
		if len(f.Packets) > 0 {
			text += fmt.Sprintf(" (packets %s)", numbers(f.Packets))
		}
		found = append(found, text)
	}})
	w := pcapng.NewWriter(out, o)
	src, err := open(Options{OnNote: func(n pcapng.RankNote) {
		w.Note(n)
		_ = w.Flush() // whose error the next one has as well
	}})
	if err != nil {
		return err
	}
	defer src.Close()
	var u pcapng.Unit
	for n := int64(1); ; n++ {
		if err := w.Flush(); err != nil {
			return err
		}
		if err := src.Next(&u); err != nil {
			ending := endOf(src.Stats(), t.End())
			found = nil
			t.EndAt(ending.Time)
			t.Finish()
			ending.Comments = found
			w.End(ending)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, w.Flush())
		}
		u.Packet = n
		part := u // which following takes apart
		found = nil
		t.Unit(&part)
		u.Comments = append(u.Comments[:len(u.Comments):len(u.Comments)], found...)
		if err := w.Unit(&u); err != nil {
			return err
		}
	}
}

// endOf returns the end of a source whose last packet was at a time.
func endOf(s Stats, last time.Time) *pcapng.Ending {
	e := &pcapng.Ending{Time: s.End, Lost: uint64(s.Skipped[SkipKernelDrops])}
	if e.Time.IsZero() {
		e.Time = last
	}
	return e
}

// numbers lists packets.
func numbers(packets []int64) string {
	s := ""
	for i, p := range packets {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(p)
	}
	return s
}
