package digest

import (
	"fmt"
	"strings"
)

// Verdict is a digest in a line.
type Verdict struct {
	// Level is good, warn or bad.
	Level string `json:"level"`
	// Text says what is wrong now, the worst first; More adds to it, or is empty.
	Text string `json:"text"`
	More string `json:"more,omitempty"`
	// Said is both for those who are told of changes: it stays the same as long as
	// nothing but time passes.
	Said string `json:"said"`
}

// maxVerdict is how long each text of a verdict is at most, in characters.
const maxVerdict = 400

// Verdict returns the digest's.
func (d *Digest) Verdict() Verdict {
	var old []Wait
	young := 0
	for i := range d.Waits {
		if w := d.Waits[i]; w.Age() != Young {
			old = append(old, w)
		} else {
			young++
		}
	}
	v := Verdict{Level: "good", Text: "Nobody waits", Said: "Nobody waits for longer than a second."}
	if young > 0 {
		v.More = fmt.Sprintf("%s on the way", Plural(young, "message"))
	}
	var broken []Trouble
	for _, t := range d.Troubles {
		if t.Severity == Bad {
			broken = append(broken, t)
		}
	}
	switch {
	case len(d.Cycles) > 0:
		c := d.Cycles[0]
		v.Level, v.Text = "bad", "Deadlock? "+Sentence(c.Text)
		v.More = "For " + Duration(c.Seconds)
		if len(d.Cycles) > 1 {
			v.More += fmt.Sprintf(", and %s", Plural(len(d.Cycles)-1, "more cycle"))
		}
		v.Said = v.Text + "."
	case len(old) > 0:
		v.Level, v.Text = "warn", Plural(len(old), "wait")
		if old[0].Age() == Old {
			v.Level = "bad"
		}
		v.Text += ", the oldest for " + Duration(old[0].Seconds)
		v.More = Sentence(old[0].Text)
		v.Said = Plural(len(old), "wait") + ". The oldest: " + old[0].Text + "."
	}
	if n := len(broken); n > 0 {
		if len(old) == 0 {
			v.Level, v.Text, v.More = "bad", Sentence(broken[0].Text), broken[0].Do
		}
		v.Said += fmt.Sprintf(" %s: %s.", Plural(n, "failure"), broken[0].Text)
	} else if len(d.Troubles) > 0 && len(old) == 0 {
		v.Level = "warn"
		v.Text += fmt.Sprintf(", but there %s", Are(len(d.Troubles), "warning"))
	}
	v.Text, v.More, v.Said = Clean(v.Text, maxVerdict), Clean(v.More, maxVerdict), Clean(v.Said, maxVerdict)
	return v
}

// Are is "is 1 wait" or "are 2 waits".
func Are(n int, what string) string {
	if n == 1 {
		return "is " + Plural(n, what)
	}
	return "are " + Plural(n, what)
}

// Plural is "1 wait" or "2 waits".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Sentence is a text with a capital letter at its beginning.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
