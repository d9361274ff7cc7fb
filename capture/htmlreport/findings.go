package htmlreport

import "github.com/zrlmpi/zrlmpid/capture"

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

// openWaits returns the waits of the messages that are listed and drawn.
func openWaits(r *capture.Report) []openWait {
	drawn := map[int64]bool{}
	for i := range r.Messages {
		drawn[r.Messages[i].ID] = len(r.Messages[i].Steps) > 0
	}
	waits := []openWait{}
	for i := range r.Findings {
		for _, w := range r.Findings[i].Waits {
			if drawn[w.Message] {
				since := min(max(int64(w.Since.Sub(r.Start)), -mostTime), mostTime)
				waits = append(waits, openWait{Message: w.Message, Who: w.Rank, On: w.Peer, What: w.For, Since: since})
			}
		}
	}
	return waits
}
