package htmlreport

import (
	"slices"

	"github.com/zrlmpi/zrlmpid/capture"
)

// kindRow is a kind of finding.
type kindRow struct {
	Name capture.Kind `json:"name"`
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
	for i := range r.Findings {
		f := &r.Findings[i]
		k := slices.IndexFunc(c.Kinds, func(row kindRow) bool { return row.Name == f.Kind })
		if k < 0 {
			k = len(c.Kinds)
			c.Kinds = append(c.Kinds, kindRow{Name: f.Kind, Level: levels[f.Kind]})
		}
		c.Kinds[k].Total++
		c.Kind = append(c.Kind, k)
		c.Time = append(c.Time, nanoseconds(f.Time))
		c.Text = append(c.Text, f.Text)
		c.Packets = append(c.Packets, append([]int64{}, f.Packets...)) // empty and not null
		c.Messages = append(c.Messages, append([]int64{}, f.Messages...))
	}
	for i := range c.Kinds {
		k := &c.Kinds[i]
		k.Total = max(k.Total, r.Summary.FindingsByKind[k.Name])
	}
	return c
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
