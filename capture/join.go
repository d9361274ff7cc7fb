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

// JoinInfo describes how several recordings were joined.
type JoinInfo struct {
	// Vantages lists the vantage points in the order of their first files in the call of OpenFiles.
	Vantages []VantagePoint `json:"vantages"`
	// Packets is the number of different ZRLMPI packets in all recordings. Common is the number of those that were
	// recorded at more than one vantage point.
	Packets int64 `json:"packets"`
	Common  int64 `json:"common"`
	// Missing counts packets recorded at one vantage point but not at the next one, although the next one was
	// recording. They were lost either on the path between the two or by the second recorder.
	Missing []MissingPackets `json:"missing,omitempty"`
	// OneWay lists the flows that one vantage point lacks although it recorded packets of the opposite direction.
	OneWay []OneWayFlow `json:"one_way,omitempty"`
	// Undecided counts packets whose fate is unknown because too many packets were in flight.
	Undecided int64 `json:"undecided,omitempty"`
}

// VantagePoint describes a place where packets were recorded.
type VantagePoint struct {
	// Files lists the files recorded there, in order of time.
	Files []string `json:"files"`
	// Packets is the number of ZRLMPI packets. Only is the number of packets recorded at no other vantage point.
	Packets int64 `json:"packets"`
	Only    int64 `json:"only"`
	// Clock relates this vantage point's clock to the reference, the first vantage point's clock. It is nil for the
	// first vantage point, and if no common packets relate the clocks, in which case times are not corrected.
	Clock *Clock `json:"clock,omitempty"`
	// Dropped is the number of packets lost by the recorders, or 0 if the files do not contain this number.
	Dropped int64 `json:"dropped,omitempty"`
}

// Clock relates a clock to the reference clock.
type Clock struct {
	// Offset is the number of seconds by which the clock is ahead of the reference.
	Offset float64 `json:"offset_seconds"`
	// Uncertainty is half of the shortest round trip, in seconds. It is nil if all common packets travel in the same
	// direction, in which case the offset includes the path delay.
	Uncertainty *float64 `json:"uncertainty_seconds"`
	// Drift is the rate difference in seconds per second. It is positive if the clock runs faster than the reference.
	Drift float64 `json:"drift"`
	// Packets is the number of packets used to compare the two clocks.
	Packets int `json:"packets"`
}

// MissingPackets counts the packets in recording From that are missing from recording To.
type MissingPackets struct {
	From    string `json:"from"`
	To      string `json:"to"`
	Packets int64  `json:"packets"`
}

// OneWayFlow describes a flow that one vantage point lacks.
type OneWayFlow struct {
	Src string `json:"src_address"`
	Dst string `json:"dst_address"`
	// In is a file that contains packets of the flow. NotIn is a file that lacks them and contains only packets of the
	// opposite direction.
	In      string `json:"in"`
	NotIn   string `json:"not_in"`
	Packets int64  `json:"packets"`
}

// text describes the flow.
func (o *OneWayFlow) text() string {
	return fmt.Sprintf("none of the %s from %s to %s in %s is in %s, which has packets of the other direction: all were "+
		"lost between them, or that recording has one direction only", formatCount(o.Packets,
		"packet"), o.Src, o.Dst, o.In, o.NotIn)
}

// OpenFiles opens several recordings as one Source, or a single recording like OpenFile. Files recorded one after the
// other at the same vantage point are read in that order. Recordings from several vantage points are merged in order of
// time: OpenFiles relates their clocks by means of common packets, and the Source returns a packet recorded at several
// vantage points once, with a Trail. All files are read twice.
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
		prefix = min(prefix, s.minRecorded)
	}
	if prefix < math.MaxInt { // some packets are truncated: compare their common prefix
		if files, err = o.surveyFiles(ctx, paths, prefix); err != nil {
			return nil, err
		}
	}
	list := groupByVantage(files)
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

// describeJoin returns a description of how the recordings were joined.
func (m *merger) describeJoin() *JoinInfo {
	joinInfo := &JoinInfo{Packets: m.packets, Common: m.common, Undecided: m.undecided}
	for i, v := range m.vantages {
		var clock *Clock
		if c := v.clock; i > 0 && v.hasClock {
			clock = &Clock{Offset: c.offset / 1e9, Drift: c.drift, Packets: c.forwardPackets + c.backwardPackets +
				c.unorderedPackets}
			if !math.IsInf(c.uncertainty, 1) {
				clock.Uncertainty = new(c.uncertainty / 1e9)
			}
		}
		r := m.readers[i]
		joinInfo.Vantages = append(joinInfo.Vantages, VantagePoint{
			Files: r.fileNames(), Packets: r.datagrams, Only: r.onlyHere, Clock: clock, Dropped: v.droppedPackets(),
		})
	}
	for _, l := range m.missing {
		joinInfo.Missing = append(joinInfo.Missing, *l)
	}
	for _, f := range m.oneWay {
		joinInfo.OneWay = append(joinInfo.OneWay, *f)
	}
	return joinInfo
}

// vantageReader reads the files of a vantage point in order of time.
type vantageReader struct {
	*vantage
	index      int
	opts       Options
	shortNames map[*survey]string
	files      []*survey // still to be read
	src        *source
	// unit is the next packet of the vantage point. If the packet is a TCP segment, src.decoder.segment holds it
	// instead. refTime is the time of the packet or segment on the reference clock.
	unit    pcapng.Unit
	result  decodeResult
	refTime int64
	name    string
	ended   bool
	err     error
	stats   Stats
	// datagrams counts the datagrams read, and onlyHere the ones seen at no other vantage point.
	datagrams int64
	onlyHere  int64
}

func (r *vantageReader) fileNames() (list []string) {
	for _, s := range r.vantage.files {
		list = append(list, s.name)
	}
	return list
}

// advance reads the next packet.
func (r *vantageReader) advance() error {
	for {
		if r.src == nil {
			if len(r.files) == 0 {
				r.ended = true
				return nil
			}
			if err := r.openFile(r.files[0]); err != nil {
				return err
			}
			r.files = r.files[1:]
		}
		result := r.src.readPacket(&r.unit)
		if err := r.src.err; err != nil {
			if !errors.Is(err, io.EOF) {
				r.err = errors.Join(r.err, err)
			}
			r.closeFile()
			continue
		}
		if r.result = result; result == gotUnit || result == gotSegment {
			r.refTime = r.toReference(r.src.rec.Time.UnixNano())
			return nil
		}
	}
}

// openFile opens the file s of a vantage point. It also makes src convert the times of notes to the reference clock
// before passing them to OnNote.
func (r *vantageReader) openFile(s *survey) (err error) {
	options := r.opts
	if note := options.OnNote; note != nil {
		options.OnNote = func(rankNote pcapng.RankNote) {
			switch n := rankNote.(type) {
			case *pcapng.QueueDepths:
				n.Time = r.toReferenceTime(n.Time)
			case *pcapng.Call:
				n.Time = r.toReferenceTime(n.Time)
			}
			note(rankNote)
		}
	}
	r.name = r.shortNames[s]
	r.src, err = options.openSegments(s.name)
	return err
}

// toReferenceTime converts a time of this vantage point's clock to the reference clock.
func (r *vantageReader) toReferenceTime(t time.Time) time.Time {
	at := t.UnixNano()
	return t.Add(time.Duration(r.toReference(at) - at))
}

// closeFile closes the current file and adds its counts to stats.
func (r *vantageReader) closeFile() {
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
func (s *Stats) add(stats *Stats) {
	s.Packets += stats.Packets
	s.Bytes += stats.Bytes
	if s.Comment == "" {
		s.Comment = stats.Comment
	}
	if stats.End.After(s.End) {
		s.End = stats.End
	}
	for reason, n := range stats.Skipped {
		if s.Skipped == nil {
			s.Skipped = map[string]int64{}
		}
		s.Skipped[reason] += n
	}
}

// oneLine returns the text of an error on one line, even for joined errors.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }
