package digest

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

// Verdict summarizes a digest in one line.
type Verdict struct {
	Level Level `json:"level"`
	// Text describes the most severe problem. More adds details, if any.
	Text string `json:"text"`
	More string `json:"more,omitempty"`
	// Announcement is the text that screen readers announce. It does not change merely because time passes.
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
	verdict := Verdict{Level: LevelGood, Text: "No rank is waiting", Announcement: "No rank has waited longer than 1 s."}
	if d.Doubtful {
		verdict = Verdict{Level: LevelWarn, Text: "No wait is known", Announcement: "No wait is known."}
	}
	if brief > 0 {
		verdict.More = words.Plural(brief, "message") + " in progress"
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
		verdict.Level, verdict.Text = LevelBad, "Possible deadlock: "+c.Text
		verdict.More = "For " + words.Duration(c.Seconds)
		if len(d.Cycles) > 1 {
			verdict.More += fmt.Sprintf(", and %s", words.Plural(len(d.Cycles)-1, "more cycle"))
		}
		verdict.Announcement = verdict.Text + "."
	case len(old) > 0:
		verdict.Level, verdict.Text = LevelWarn, words.Plural(len(old), "wait")
		if old[0].Age() == Long {
			verdict.Level = LevelBad
		}
		verdict.Text += ", longest " + words.Duration(old[0].Seconds)
		verdict.More = "" // the list of waits contains the details
		verdict.Announcement = words.Plural(len(old), "wait") + ". Longest: " + old[0].Text + "."
	}
	if n := len(failures); n > 0 {
		if len(old) == 0 {
			verdict.Level, verdict.Text, verdict.More = LevelBad, words.Sentence(failures[0].Text), failures[0].Action
		}
		verdict.Announcement += fmt.Sprintf(" %s: %s.", words.Plural(n, "failure"), failures[0].Text)
	} else if len(d.Problems) > 0 && len(old) == 0 {
		verdict.Level = LevelWarn
		verdict.Text += ", " + words.Plural(len(d.Problems), "warning")
	}
	verdict.Text, verdict.More, verdict.Announcement = words.Clean(verdict.Text,
		maxVerdictLen), words.Clean(verdict.More, maxVerdictLen),
		words.Clean(verdict.Announcement, maxVerdictLen)
	return verdict
}
