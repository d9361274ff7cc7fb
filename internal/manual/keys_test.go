package manual_test

import (
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/internal/manual"
)

func TestKeys(t *testing.T) {
	page, err := manual.Keys([]byte(`# About the file.

log:
  level: info      # how much
  # Which
  # one.
  format: ""
ranks:
  # The first.
  - rank: 0
    link: {transport: udp}
  - rank: 1
    link:
      # Again.
      transport: tcp
`))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"# DESCRIPTION\nAbout the file.\n",
		"# LOG\n**log.level** = *info*\n: how much\n",
		"**log.format** = *\"\"*\n: Which\n    one.\n",
		"# RANKS\nThe first.\n\n**ranks\\[].rank** = *0*\n",
		"**ranks\\[].link.transport** = *udp*\n",
		"**ranks\\[].link.transport** = *tcp*\n: Again.\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is not in\n%s", want, page)
		}
	}
	if n := strings.Count(page, "rank** ="); n != 1 {
		t.Errorf("ranks[].rank is described %d times\n%s", n, page)
	}
	for _, bad := range []string{"", "- 1\n", "a: [\n"} {
		if _, err := manual.Keys([]byte(bad)); err == nil {
			t.Errorf("%q is taken for a reference", bad)
		}
	}
}
