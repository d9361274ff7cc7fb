package htmlreport

import (
	"regexp"
	"slices"
	"strconv"

	"github.com/zrlmpi/zrlmpid/capture"
)

// kindRow is a kind of finding.
type kindRow struct {
	Name string `json:"name"`
	// Level is 0 for what stops or corrupts an exchange, 1 for what delays
	// it, 2 for what is worth knowing.
	Level int `json:"level"`
	// Total counts those that are not listed too.
	Total int `json:"total"`
}

// levels has the kinds that are not of level 0.
var levels = map[capture.Kind]int{
	capture.LostPacket:          1,
	capture.RetransmittedPacket: 1,
	capture.DuplicatePacket:     1,
	capture.StaleHeader:         1,
	capture.CrossedRequests:     1,
	capture.Corrupt:             1,
	capture.Padding:             2,
	capture.ClosedByPeer:        2,
}

func newFindings(r *capture.Report) findingColumns {
	c := findingColumns{
		Kind: []int{}, Kinds: []kindRow{}, Time: []int64{}, Text: []string{}, Packets: [][]int64{}, Messages: [][]int64{},
	}
	places := map[capture.Kind]int{}
	for i := range r.Findings {
		f := &r.Findings[i]
		k, ok := places[f.Kind]
		if !ok {
			k = len(c.Kinds)
			places[f.Kind] = k
			c.Kinds = append(c.Kinds, kindRow{Name: string(f.Kind), Level: levels[f.Kind]})
		}
		c.Kinds[k].Total++
		c.Kind = append(c.Kind, k)
		c.Time = append(c.Time, nanoseconds(f.Time))
		c.Text = append(c.Text, f.Text)
		c.Packets = append(c.Packets, orEmpty(f.Packets))
		c.Messages = append(c.Messages, orEmpty(f.Messages))
	}
	for kind, n := range r.Summary.FindingsByKind {
		if k, ok := places[kind]; ok {
			c.Kinds[k].Total = max(c.Kinds[k].Total, n)
		}
	}
	return c
}

func orEmpty(list []int64) []int64 {
	if list == nil {
		return []int64{}
	}
	return list
}

// openWait is a rank that waits at the end of the recording: the message's ID, who
// waits for what from whom, and since when in nanoseconds.
type openWait struct {
	Message int64  `json:"message"`
	Who     int    `json:"who"`
	On      int    `json:"on"`
	What    string `json:"what"`
	Since   int64  `json:"since"`
}

// waitKinds are the findings about messages that have not ended.
var waitKinds = []capture.Kind{
	capture.Waiting, capture.NeverCleared, capture.RetransmissionsExhausted, capture.Wedged, capture.Deadlock,
}

// waitText is how the findings say which rank waits. They have more than the steps:
// a CLEAR_TO_SEND that came before its request is no step of the message.
var waitText = regexp.MustCompile(`rank (\d+) has waited \S+ for ([A-Z_]+) from rank (\d+)`)

func openWaits(r *capture.Report) []openWait {
	byID := map[int64]*capture.Message{}
	for i := range r.Messages {
		if m := &r.Messages[i]; !m.Complete {
			byID[m.ID] = m
		}
	}
	waits := []openWait{}
	for i := range r.Findings {
		f := &r.Findings[i]
		if !slices.Contains(waitKinds, f.Kind) {
			continue
		}
		texts := waitText.FindAllStringSubmatch(f.Text, -1)
		for k, id := range f.Messages {
			m := byID[id]
			if m == nil || len(m.Steps) == 0 {
				continue
			}
			delete(byID, id)
			waits = append(waits, newOpenWait(r, m, texts[min(k, len(texts)):]))
		}
	}
	return waits
}

// newOpenWait says which rank waits in a message. texts is what the finding says of this
// message and those after it.
func newOpenWait(r *capture.Report, m *capture.Message, texts [][]string) openWait {
	// A retransmission changes nothing about what is waited for.
	last := m.Steps[0]
	for _, s := range m.Steps {
		if !s.Retransmitted {
			last = s
		}
	}
	w := openWait{Message: m.ID, Who: m.Src, On: m.Dst, What: "ACK", Since: min(max(int64(last.End.Sub(r.Start)), -mostTime), mostTime)}
	switch {
	case last.Type == "SEND_REQUEST":
		w.What = "CLEAR_TO_SEND"
	case last.Type == "CLEAR_TO_SEND", last.Type == "DATA" && last.Bytes < int64(m.Words)*4:
		w.Who, w.On, w.What = m.Dst, m.Src, "DATA"
	}
	for _, text := range texts {
		who, errWho := strconv.Atoi(text[1])
		on, errOn := strconv.Atoi(text[3])
		if errWho == nil && errOn == nil && (who == m.Src && on == m.Dst || who == m.Dst && on == m.Src) {
			w.Who, w.On, w.What = who, on, text[2]
			break
		}
	}
	return w
}
