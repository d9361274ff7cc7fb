package htmlreport_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/capture/htmlreport"
	"github.com/zrlmpi/zrlmpid/capture/reporttest"
)

func page(t *testing.T, r *capture.Report) string {
	t.Helper()
	var b bytes.Buffer
	if err := htmlreport.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

var dataElement = regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`)

// data decodes the data in a page as the script does.
func data(t *testing.T, page string) map[string]any {
	t.Helper()
	m := dataElement.FindStringSubmatch(page)
	if m == nil {
		t.Fatal("the page has no data element")
	}
	var d map[string]any
	if err := json.Unmarshal([]byte(m[1]), &d); err != nil {
		t.Fatalf("the data is no JSON: %v", err)
	}
	return d
}

func TestTextCannotBreakOut(t *testing.T) {
	plain := page(t, reporttest.TroubledReport())
	for _, text := range reporttest.HostileTexts {
		r := reporttest.TroubledReport()
		r.Source = text
		r.Summary.Truncated = text
		r.Summary.Skipped = map[string]int64{text: 3}
		r.Findings[0].Text = text
		r.Findings[1].Kind = capture.FindingKind(text)
		r.Messages[0].Call, r.Messages[0].Verdict = text, text
		r.Messages[0].Steps[0].Type = text
		got := page(t, r)
		for _, what := range []string{"<script", "</script", "<style", "</style", "<img", "<!--", "</title"} {
			want := strings.Count(strings.ToLower(plain), what)
			if n := strings.Count(strings.ToLower(got), what); n != want {
				t.Errorf("%q: the page has %d %s, and %d without the text", text, n, what, want)
			}
		}
		d := data(t, got)
		findings := d["findings"].(map[string]any)
		// A conversion to runes replaces each invalid UTF-8 byte with U+FFFD.
		if got, want := findings["text"].([]any)[0], string([]rune(text)); got != want {
			t.Errorf("the finding's text is %q, want %q", got, want)
		}
	}
}

func TestPolicyAllowsOnlyThePagesOwnCode(t *testing.T) {
	html := page(t, reporttest.TroubledReport())
	policy := regexp.MustCompile(`<meta http-equiv="Content-Security-Policy" content="([^"]*)">`).FindStringSubmatch(html)
	if policy == nil {
		t.Fatal("the page has no policy")
	}
	for _, unwanted := range []string{"unsafe", "http:", "https:", "*", "blob:"} {
		if strings.Contains(policy[1], unwanted) {
			t.Errorf("the policy allows %s: %s", unwanted, policy[1])
		}
	}
	if !strings.HasPrefix(policy[1], "default-src &#39;none&#39;") {
		t.Errorf("the policy begins with %s", policy[1])
	}
	for _, load := range []string{"http://", "https://", "@import", "url(", "<link rel=\"stylesheet\"", " src="} {
		if strings.Contains(html, load) {
			t.Errorf("the page contains %s", load)
		}
	}
}

func TestSameReportSamePage(t *testing.T) {
	r := reporttest.TroubledReport()
	r.Summary.Skipped = map[string]int64{"arp": 3, "ipv6": 1, "icmp": 7, "lldp": 2}
	first := page(t, r)
	for range 5 {
		if page(t, r) != first {
			t.Fatal("the same report gave another page")
		}
	}
}

func TestHeadCanBeReadWithoutScript(t *testing.T) {
	clean := reporttest.Traffic{Ranks: 3, Messages: 20}.Report()
	cut := reporttest.Traffic{Ranks: 3, Messages: 20}.Report()
	cut.Summary.Truncated = "packet 71 ends after 12 bytes"
	more := reporttest.TroubledReport()
	more.Summary.MessagesNotListed, more.Summary.FindingsNotListed = 1234567, 5
	one := reporttest.Traffic{Ranks: 3, Messages: 20}.Report()
	one.Findings = []capture.Finding{{Kind: capture.MixedPadding, Text: "rank 1 pads", Packets: []int64{3}}}
	for _, c := range []struct {
		name   string
		report *capture.Report
		want   []string
	}{
		{"clean", clean, []string{`<p class="verdict clean" id="verdict">clean</p>`, "synthetic-20.pcap"}},
		{"cut", cut, []string{"no findings in the readable part of the recording", "packet 71 ends after 12 bytes"}},
		{"one", one, []string{">1 finding<"}},
		{"more", more, []string{"19 findings", "1\u202f234\u202f567 of ", "5 findings more"}},
		{"empty", &capture.Report{}, []string{"no messages in this recording", "standard input"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			html := page(t, c.report)
			head, _, _ := strings.Cut(html[strings.Index(html, "<body>"):], "<main>")
			for _, want := range c.want {
				if !strings.Contains(head, want) {
					t.Errorf("the head lacks %q:\n%s", want, head)
				}
			}
		})
	}
}

// TestFindingsCanBeReadWithoutScript: the page opens at the first of the most serious findings, and each finding lists
// its packets.
func TestFindingsCanBeReadWithoutScript(t *testing.T) {
	r := &capture.Report{Findings: []capture.Finding{
		{Kind: capture.MixedPadding, Text: "rank 1 pads", Packets: []int64{3}},
		{Kind: capture.LostPacket, Text: "an ACK is lost", Packets: []int64{4, 7}},
		{Kind: capture.Deadlock, Text: "cycle <0> → 1 → 0"},
		{Kind: capture.Deadlock, Text: "another"},
	}}
	html := page(t, r)
	for _, want := range []string{
		`<li id="finding-1" class="finding level-2"><span`, "rank 1 pads", ">packet 3<", ">lost packet<",
		">packets 4, 7<",
		`<li id="finding-3" class="finding level-0" tabindex="-1" autofocus><span`, "cycle &lt;0&gt; → 1 → 0",
	} {
		if !strings.Contains(html, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(html, "autofocus"); n != 1 {
		t.Errorf("%d findings take the focus", n)
	}
	r.Findings = slices.Repeat(r.Findings[:1], 1000)
	if n := strings.Count(page(t, r), "<li id="); n != 100 {
		t.Errorf("%d of 1000 findings are in the page without the script", n)
	}
}

func TestCorruptTimesAreNoError(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), -1, 1e300} {
		r := reporttest.TroubledReport()
		r.Summary.Seconds, r.Messages[3].Start, r.Findings[2].Time = x, x, x
		r.Messages[3].Phases.Total, r.Messages[3].Phases.DataToAck = &x, &x
		r.Messages[4].Steps[0].Time = time.Time{}
		r.Summary.All.Total.Max = x
		data(t, page(t, r))
	}
}

type failing struct{ left int }

var errDisk = errors.New("disk full")

func (f *failing) Write(b []byte) (int, error) {
	if f.left -= len(b); f.left < 0 {
		return 0, errDisk
	}
	return len(b), nil
}

func TestErrors(t *testing.T) {
	if err := htmlreport.Write(io.Discard, nil); !errors.Is(err, htmlreport.ErrNoReport) {
		t.Errorf("a nil report gave %v", err)
	}
	for _, room := range []int{0, 1000, 100000} {
		err := htmlreport.Write(&failing{room}, reporttest.TroubledReport())
		if !errors.Is(err, errDisk) || !strings.Contains(err.Error(), "trouble in rank 2.pcap") {
			t.Errorf("with space for %d bytes: %v", room, err)
		}
	}
}

func TestSize(t *testing.T) {
	var b bytes.Buffer
	r := reporttest.Traffic{Ranks: 12, Messages: 100_000, LossEvery: 400, AllToAll: true}.Report()
	start := time.Now()
	if err := htmlreport.Write(&b, r); err != nil {
		t.Fatal(err)
	}
	t.Logf("100,000 messages: %.1f MB in %v", float64(b.Len())/1e6, time.Since(start).Round(time.Millisecond))
	if b.Len() > 20e6 {
		t.Errorf("100,000 messages give a page of %d bytes", b.Len())
	}
	if small := len(page(t, &capture.Report{})); small > 150_000 {
		t.Errorf("a page about nothing has %d bytes", small)
	}
}

// TestEveryScriptIsInThePage finds scripts that are missing from the list of scripts.
func TestEveryScriptIsInThePage(t *testing.T) {
	html := page(t, &capture.Report{})
	files, err := os.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile("assets/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if f.Name() != "page.html" && !strings.Contains(html, string(b)) {
			t.Errorf("%s is not in the page", f.Name())
		}
	}
}
