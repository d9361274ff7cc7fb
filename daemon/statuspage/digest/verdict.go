package digest

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// Verdict is a one-line summary of a digest.
type Verdict struct {
	Level Level `json:"level"`
	// Text describes the most severe problem. More contains details, or is empty.
	Text string `json:"text"`
	More string `json:"more,omitempty"`
	// Announcement is the text for screen readers. It does not change merely because time passes.
	Announcement string `json:"announcement"`
}

// Level is the urgency of a verdict.
type Level string

// Levels of verdicts.
const (
	LevelGood Level = "good"
	LevelWarn Level = "warn"
	LevelBad  Level = "bad"
)

// maxVerdictLen is the maximum length of each text of a verdict, in characters.
const maxVerdictLen = 400

// Verdict returns the digest's verdict.
func (d *Digest) Verdict() Verdict {
	old, brief := d.splitBrief()
	v := Verdict{Level: LevelGood, Text: "No rank is waiting", Announcement: "No rank has waited longer than 1 s."}
	if d.Doubtful {
		v = Verdict{Level: LevelWarn, Text: "No wait is known", Announcement: "No wait is known."}
	}
	if brief > 0 {
		v.More = words.Plural(brief, "message") + " in progress"
	}
	var failures []Problem
	for _, p := range d.Problems {
		if p.Severity == Failure {
			failures = append(failures, p)
		}
	}
	switch {
	case len(d.Cycles) > 0:
		c := d.Cycles[0]
		v.Level, v.Text = LevelBad, "Possible deadlock: "+c.Text
		v.More = "For " + words.Duration(c.Seconds)
		if len(d.Cycles) > 1 {
			v.More += fmt.Sprintf(", and %s", words.Plural(len(d.Cycles)-1, "more cycle"))
		}
		v.Announcement = v.Text + "."
	case len(old) > 0:
		v.Level, v.Text = LevelWarn, words.Plural(len(old), "wait")
		if old[0].Age() == Long {
			v.Level = LevelBad
		}
		v.Text += ", longest " + words.Duration(old[0].Seconds)
		v.More = "" // the list of waits contains the details
		v.Announcement = words.Plural(len(old), "wait") + ". Longest: " + old[0].Text + "."
	}
	if n := len(failures); n > 0 {
		if len(old) == 0 {
			v.Level, v.Text, v.More = LevelBad, words.Sentence(failures[0].Text), failures[0].Action
		}
		v.Announcement += fmt.Sprintf(" %s: %s.", words.Plural(n, "failure"), failures[0].Text)
	} else if len(d.Problems) > 0 && len(old) == 0 {
		v.Level = LevelWarn
		v.Text += ", " + words.Plural(len(d.Problems), "warning")
	}
	v.Text, v.More, v.Announcement = words.Clean(v.Text, maxVerdictLen), words.Clean(v.More, maxVerdictLen),
		words.Clean(v.Announcement, maxVerdictLen)
	return v
}
