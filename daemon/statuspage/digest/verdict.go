package digest

import (
	"fmt"
	"strings"
)

// Verdict is a digest in a line.
type Verdict struct {
	// Level is good, warn or bad.
	Level string `json:"level"`
	// Text is the most severe problem, More adds to it or is empty.
	Text string `json:"text"`
	More string `json:"more,omitempty"`
	// Announcement is both for screen readers: it does not change while only time
	// passes.
	Announcement string `json:"announcement"`
}

// maxVerdict bounds each text of a verdict, in characters.
const maxVerdict = 400

// Verdict returns the digest's verdict.
func (d *Digest) Verdict() Verdict {
	old, brief := d.old()
	v := Verdict{Level: "good", Text: "No rank is waiting", Announcement: "No rank has waited longer than 1 s."}
	if d.Doubtful {
		v = Verdict{Level: "warn", Text: "No wait is known", Announcement: "No wait is known."}
	}
	if brief > 0 {
		v.More = Plural(brief, "message") + " in progress"
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
		v.Level, v.Text = "bad", "Possible deadlock: "+c.Text
		v.More = "For " + Duration(c.Seconds)
		if len(d.Cycles) > 1 {
			v.More += fmt.Sprintf(", and %s", Plural(len(d.Cycles)-1, "more cycle"))
		}
		v.Announcement = v.Text + "."
	case len(old) > 0:
		v.Level, v.Text = "warn", Plural(len(old), "wait")
		if old[0].Age() == Long {
			v.Level = "bad"
		}
		v.Text += ", longest " + Duration(old[0].Seconds)
		v.More = "" // the list of waits says what for
		v.Announcement = Plural(len(old), "wait") + ". Longest: " + old[0].Text + "."
	}
	if n := len(failures); n > 0 {
		if len(old) == 0 {
			v.Level, v.Text, v.More = "bad", Sentence(failures[0].Text), failures[0].Action
		}
		v.Announcement += fmt.Sprintf(" %s: %s.", Plural(n, "failure"), failures[0].Text)
	} else if len(d.Problems) > 0 && len(old) == 0 {
		v.Level = "warn"
		v.Text += ", " + Plural(len(d.Problems), "warning")
	}
	v.Text, v.More, v.Announcement = Clean(v.Text, maxVerdict), Clean(v.More, maxVerdict), Clean(v.Announcement, maxVerdict)
	return v
}

// Plural returns "1 wait" or "2 waits".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Sentence returns a text with a capital letter at its beginning.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
