package capture

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
	"github.com/zrlmpi/zrlmpid/protocol"
)

// maxComments is the maximum number of comments that Annotate adds to a recording. The limit is needed because a
// corrupt recording may cause a finding for every packet.
const maxComments = 10000

// comment formats the finding as a packet comment.
func (f *Finding) comment() string { return fmt.Sprintf("%s: %s", f.Kind, f.Text) }

// Annotate analyzes a recording whose packet i+1 is units[i], and adds each finding as a comment to the packets in
// Finding.Packets. end is the end time of the recording; if end is zero, the recording ends with its last unit.
// Annotate returns the findings in order of detection.
func Annotate(units []pcapng.Unit, end time.Time, profile protocol.Profile) []Finding {
	var findings []Finding
	comments := 0
	tracker := NewTracker(TrackerOptions{Profile: profile, OnFinding: func(finding *Finding) {
		if len(findings) < maxFindings {
			findings = append(findings, *finding)
		}
		for _, packet := range finding.Packets {
			if i := packet - 1; i >= 0 && i < int64(len(units)) && comments < maxComments {
				units[i].Comments = append(units[i].Comments, finding.comment())
				comments++
			}
		}
	}})
	for i := range units {
		u := units[i] // a copy, because Tracker.ProcessUnit changes its argument
		u.Packet = int64(i + 1)
		tracker.ProcessUnit(&u)
	}
	tracker.SetEnd(end)
	tracker.Finish()
	return findings
}

// CopyAnnotated copies packets from a source to out as they arrive. It adds each finding as a comment to the packet
// that revealed it, with the numbers of all packets involved. Findings made at the end of the source become comments on
// the end of the recording. CopyAnnotated calls open to open the source, and returns the source's error, or nil at
// io.EOF.
func CopyAnnotated(out io.Writer, options pcapng.WriterOptions, open func(Options) (Source, error),
	profile protocol.Profile) error {
	var found []string
	tracker := NewTracker(TrackerOptions{Profile: profile, OnFinding: func(f *Finding) {
		text := f.comment()
		if len(f.Packets) > 0 {
			text += fmt.Sprintf(" (packets %s)", formatNumbers(f.Packets))
		}
		found = append(found, text)
	}})
	writer := pcapng.NewWriter(out, options)
	src, err := open(Options{OnNote: func(n pcapng.RankNote) {
		writer.AddNote(n)
		_ = writer.Flush() // the next Flush returns the same error
	}})
	if err != nil {
		return err
	}
	defer src.Close()
	var unit pcapng.Unit
	for n := int64(1); ; n++ {
		if err := writer.Flush(); err != nil {
			return err
		}
		if err := src.Next(&unit); err != nil {
			ending := newEnding(src.Stats(), tracker.End())
			found = nil
			tracker.SetEnd(ending.Time)
			tracker.Finish()
			ending.Comments = found
			writer.WriteEnd(ending)
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return errors.Join(err, writer.Flush())
		}
		unit.Packet = n
		part := unit // a copy, because Tracker.ProcessUnit changes its argument
		found = nil
		tracker.ProcessUnit(&part)
		unit.Comments = append(unit.Comments[:len(unit.Comments):len(unit.Comments)], found...)
		if err := writer.WriteUnit(&unit); err != nil {
			return err
		}
	}
}

// newEnding returns the record that ends a recording. Its time is s.End or, if s.End is zero, the parameter last, which
// is the time of the source's last packet.
func newEnding(s Stats, last time.Time) *pcapng.EndRecord {
	e := &pcapng.EndRecord{Time: s.End, LostPackets: uint64(s.Skipped[SkipKernelDrops])}
	if e.Time.IsZero() {
		e.Time = last
	}
	return e
}

// formatNumbers returns a comma-separated list of packet numbers.
func formatNumbers(packets []int64) string {
	s := ""
	for i, p := range packets {
		if i > 0 {
			s += ", "
		}
		s += fmt.Sprint(p)
	}
	return s
}
