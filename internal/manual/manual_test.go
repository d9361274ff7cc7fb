package manual_test

import (
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/manual"
)

func TestHelp(t *testing.T) {
	for _, tt := range []struct{ name, text, want string }{
		{"filled", "one\ntwo", "one\ntwo\n"},
		{"escaped", "MAX_WORDS is <n>, a*b", `MAX\_WORDS is \<n>, a\*b` + "\n"},
		{"a list", "Exit codes:\n  0  ok\n  1  no_t\nend", "Exit codes:\n\n      0  ok\n      1  no_t\n\nend\n"},
		{"a table", "Kinds:\na   one\n    more\nbc  two", "Kinds:\n\n    a   one\n        more\n    bc  two\n"},
		{"a list after an empty line", "Codes:\n\n  0  ok\n\nend", "Codes:\n\n      0  ok\n\nend\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := manual.Help(tt.text); got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
}

func TestPage(t *testing.T) {
	page := string(manual.Page("thing", "8", "thing 1.0", time.Unix(0, 0).UTC(), "# NAME\nthing - does\n\n# OPTIONS\n**-v**\n: say more\n"))
	for _, want := range []string{`.TH "THING" "8" "Jan 1970" "thing 1.0" "` + manual.Title, ".SH NAME", `\fB-v\fP`, "say more"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
}

func TestDate(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "86400")
	if d, err := manual.Date(); err != nil || d.Format(time.DateOnly) != "1970-01-02" {
		t.Errorf("%v, %v", d, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "today")
	if _, err := manual.Date(); err == nil || !strings.Contains(err.Error(), "SOURCE_DATE_EPOCH") {
		t.Errorf("%v", err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "")
	before := time.Now()
	if d, err := manual.Date(); err != nil || d.Before(before) {
		t.Errorf("%v, %v", d, err)
	}
}
