package capture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/capture/pcapng"
)

// Joined is how several recordings were joined.
type Joined struct {
	// Vantages are the places where packets were recorded, in the order in which their first files were given.
	Vantages []Vantage `json:"vantages"`
	// Packets is the number of ZRLMPI packets, each counted once, and Common how many of them are in recordings of
	// several places.
	Packets int64 `json:"packets"`
	Common  int64 `json:"common"`
	// Missing counts packets that a recording has and that of the next place has not, although it goes on: they were
	// lost between both, or by the recorder there.
	Missing []Missing `json:"missing,omitempty"`
	// OneWay are the flows of which one place has none, although it has packets of the other direction.
	OneWay []OneWay `json:"one_way,omitempty"`
	// Undecided counts packets of which too many were in flight to know what became of them.
	Undecided int64 `json:"undecided,omitempty"`
}

// Vantage is a place where packets were recorded.
type Vantage struct {
	// Files are those that were recorded there, in the order of time.
	Files []string `json:"files"`
	// Packets is the number of ZRLMPI packets, and Only how many of them no other place has.
	Packets int64 `json:"packets"`
	Only    int64 `json:"only"`
	// Clock compares its clock with that of the first place, which all times are on. It is nil for the first place,
	// and where no packet is in common: then times are as recorded.
	Clock *Clock `json:"clock,omitempty"`
	// Dropped is the number of packets that the recorders lost, as far as the files say so.
	Dropped int64 `json:"dropped,omitempty"`
}

// Clock is a clock compared with another one.
type Clock struct {
	// Offset is how much it is ahead, in seconds.
	Offset float64 `json:"offset_seconds"`
	// Uncertainty is half of the shortest round trip, in seconds; nil if packets of only one direction are in both
	// recordings, and the delay of the path cannot be distinguished from the offset.
	Uncertainty *float64 `json:"uncertainty_seconds"`
	// Drift is how much faster it goes, in seconds per second.
	Drift float64 `json:"drift"`
	// Packets is the number of packets by which the clocks were compared.
	Packets int `json:"packets"`
}

// Missing counts packets that are in one recording and not in another one.
type Missing struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Packets int64  `json:"packets"`
}

// OneWay is a flow of which one place has nothing.
type OneWay struct {
	Src string `json:"src_address"`
	Dst string `json:"dst_address"`
	// In is a file that has its packets, and NotIn one that has only those of the other direction.
	In      string `json:"in"`
	NotIn   string `json:"not_in"`
	Packets int64  `json:"packets"`
}

// text puts the flow into words.
func (o *OneWay) text() string {
	return fmt.Sprintf("none of the %s from %s to %s in %s is in %s, which has those of the other direction: all were "+
		"lost between them, or that recording has one direction only", counted(o.Packets,
		"packet"), o.Src, o.Dst, o.In, o.NotIn)
}

// OpenFiles opens several recordings as one, or a single one as OpenFile does. Files of one place that were recorded
// one after the other are read so. Those of several places are merged in the order of time: their clocks are compared
// by the packets that they have in common, and a packet that several places have is given once, with a Trail. All
// files are read twice.
func (o Options) OpenFiles(ctx context.Context, paths []string) (Source, error) {
	if len(paths) == 1 {
		return o.OpenFile(paths[0])
	}
	if slices.Contains(paths, "-") {
		return nil, errors.New("standard input cannot be joined with files, as they are read twice: " +
			"save it to a file first")
	}
	prefix := math.MaxInt
	files, err := o.surveyFiles(ctx, paths, prefix)
	if err != nil {
		return nil, err
	}
	for _, s := range files {
		prefix = min(prefix, s.recorded)
	}
	if prefix < math.MaxInt { // some packets are truncated: compare the prefix that every file has
		if files, err = o.surveyFiles(ctx, paths, prefix); err != nil {
			return nil, err
		}
	}
	list := vantages(files)
	return newMerger(o, files, list, setClocks(list), prefix)
}

func (o Options) surveyFiles(ctx context.Context, paths []string, prefix int) (files []*survey, err error) {
	for _, path := range paths {
		s, err := o.surveyFile(ctx, path, prefix)
		if err != nil {
			return nil, err
		}
		files = append(files, s)
	}
	return files, nil
}

// joined returns how the recordings were joined.
func (m *merger) joined() *Joined {
	j := &Joined{Packets: m.packets, Common: m.common, Undecided: m.undecided}
	for i, v := range m.vantages {
		var clock *Clock
		if c := v.clock; i > 0 && v.linked {
			clock = &Clock{Offset: c.offset / 1e9, Drift: c.drift, Packets: c.there + c.back + c.oneWay}
			if !math.IsInf(c.uncertainty, 1) {
				clock.Uncertainty = new(c.uncertainty / 1e9)
			}
		}
		r := m.readers[i]
		j.Vantages = append(j.Vantages, Vantage{
			Files: r.names(), Packets: r.datagrams, Only: r.only, Clock: clock, Dropped: v.dropped(),
		})
	}
	for _, l := range m.missing {
		j.Missing = append(j.Missing, *l)
	}
	for _, f := range m.oneWay {
		j.OneWay = append(j.OneWay, *f)
	}
	return j
}

// vantageReader reads the files of a vantage point one after the other.
type vantageReader struct {
	*vantage
	index int
	opts  Options
	short map[*survey]string
	files []*survey // still to be read
	src   *source
	// unit is the next packet, or the source's decoder has a segment, at a time on the clock of the first vantage
	// point.
	unit      pcapng.Unit
	verdict   verdict
	at        int64
	name      string
	ended     bool
	err       error
	stats     Stats
	datagrams int64
	only      int64
}

func (r *vantageReader) names() (list []string) {
	for _, s := range r.vantage.files {
		list = append(list, s.name)
	}
	return list
}

// next reads the next packet.
func (r *vantageReader) next() error {
	for {
		if r.src == nil {
			if len(r.files) == 0 {
				r.ended = true
				return nil
			}
			if err := r.open(r.files[0]); err != nil {
				return err
			}
			r.files = r.files[1:]
		}
		v := r.src.packet(&r.unit)
		if err := r.src.err; err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = errors.Join(r.err, err)
			}
			r.close()
			continue
		}
		if r.verdict = v; v == gotUnit || v == gotSegment {
			r.at = r.toReference(r.src.rec.Time.UnixNano())
			return nil
		}
	}
}

// open opens a file. Notes on ranks get times on the clock of the first vantage point.
func (r *vantageReader) open(s *survey) (err error) {
	o := r.opts
	if note := o.OnNote; note != nil {
		o.OnNote = func(n pcapng.RankNote) {
			switch n := n.(type) {
			case *pcapng.Depths:
				n.Time = r.toReferenceTime(n.Time)
			case *pcapng.Call:
				n.Time = r.toReferenceTime(n.Time)
			}
			note(n)
		}
	}
	r.name = r.short[s]
	r.src, err = o.openSegments(s.name)
	return err
}

func (r *vantageReader) toReferenceTime(t time.Time) time.Time {
	at := t.UnixNano()
	return t.Add(time.Duration(r.toReference(at) - at))
}

// close closes the file at hand, and adds what was read to the counts.
func (r *vantageReader) close() {
	if r.src == nil {
		return
	}
	s := r.src.Stats()
	r.stats.add(&s)
	if !s.End.IsZero() {
		r.stats.End = r.toReferenceTime(s.End)
	}
	r.src.Close()
	r.src = nil
}

// add adds the counts of another recording.
func (s *Stats) add(t *Stats) {
	s.Packets += t.Packets
	s.Bytes += t.Bytes
	if s.Comment == "" {
		s.Comment = t.Comment
	}
	if t.End.After(s.End) {
		s.End = t.End
	}
	for reason, n := range t.Skipped {
		if s.Skipped == nil {
			s.Skipped = map[string]int64{}
		}
		s.Skipped[reason] += n
	}
}

// oneLine returns the text of an error that may be several.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
