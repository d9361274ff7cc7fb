package protocol_test

import (
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// docs/ZRLMPI_protocol.md describes the bytes of packets correctly, and its rules can be cited.

func specification(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(text), "\n")
}

// codeSpans returns the code spans in a line, which are enclosed in backticks.
func codeSpans(line string) (spans []string) {
	for i, s := range strings.Split(line, "`") {
		if i%2 == 1 {
			spans = append(spans, s)
		}
	}
	return spans
}

// headerExample returns the bytes of a code span, or of a line in a block, that shows a header.
func headerExample(span string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(span, " ", ""))
	if err != nil || len(b) <= protocol.WordLen {
		return nil // a field, or no bytes at all
	}
	return b
}

func TestDocumentHeaders(t *testing.T) {
	var good, dropped int
	seen := map[string]bool{}
	for n, line := range specification(t) {
		if len(codeSpans(line)) == 0 && headerExample(line) != nil {
			t.Errorf("line %d shows a header without a description", n+1)
		}
		spans := codeSpans(line)
		for i, span := range spans {
			b := headerExample(span)
			if b == nil {
				continue
			}
			if i == 0 || i+1 >= len(spans) {
				t.Errorf("line %d: the example does not stand between its profile and its meaning", n+1)
				continue
			}
			seen[span] = true
			if len(b) > protocol.HeaderLen {
				good += checkExtendedExample(t, n+1, spans[i-1], b, spans[i+1])
				continue
			}
			profile, err := protocol.ParseProfile(spans[i-1])
			if err != nil {
				t.Errorf("line %d: %v", n+1, err)
				continue
			}
			h, defect := profile.Parse(b)
			if len(b) != protocol.HeaderLen {
				t.Errorf("line %d: the example has %d bytes", n+1, len(b))
			}
			if defect.OK() {
				good++
				if h.String() != spans[i+1] {
					t.Errorf("line %d: it is %v, but the document says %s", n+1, h, spans[i+1])
				}
				continue
			}
			dropped++
			want := fmt.Sprintf("dropped: `%v` at byte %d ", defect.Kind, defect.Offset)
			if !strings.Contains(line, want) {
				t.Errorf("line %d: it is %s", n+1, want)
			}
		}
	}
	for _, ex := range examples {
		if !seen[ex.bytes] {
			t.Errorf("the document does not show %s", ex.bytes)
		}
	}
	if good < len(examples) || dropped == 0 {
		t.Errorf("%d good and %d bad headers are shown", good, dropped)
	}
}

// The table of the header's fields is checked against a header with a different value in every byte.
func TestDocumentFieldOffsets(t *testing.T) {
	b := protocol.V09.Append(nil,
		protocol.Header{Dst: 0x07060504, Src: 0x0b0a0908, Size: 0x0f0e0d0c, Call: protocol.Barrier,
			Type: protocol.Error, Tag: 18})
	values := map[string]string{
		"start mark": "96969696", "destination rank": "04050607", "source rank": "08090a0b", "size": "0c0d0e0f",
		"call": "04", "packet type": "05", "tag": "12", "reserved": "000000000000000000", "end mark": "96969696",
	}
	row := regexp.MustCompile(`^\| (\d+)(?:–(\d+))? \| ([a-z ]+) \|`)
	next := 0
	for n, line := range specification(t) {
		m := row.FindStringSubmatch(line)
		if m == nil || values[m[3]] == "" {
			continue
		}
		from, _ := strconv.Atoi(m[1])
		to := from
		if m[2] != "" {
			to, _ = strconv.Atoi(m[2])
		}
		if from != next || to < from || to >= len(b) {
			t.Fatalf("line %d: bytes %d to %d, but the last field ended before %d", n+1, from, to, next)
		}
		if got := hex.EncodeToString(b[from : to+1]); got != values[m[3]] {
			t.Errorf("line %d: bytes %d to %d are %s, and not the %s", n+1, from, to, got, m[3])
		}
		delete(values, m[3])
		next = to + 1
	}
	if next != protocol.HeaderLen || len(values) > 0 {
		t.Errorf("the fields end at %d; missing: %v", next, values)
	}
}

func TestDocumentCallsAndTypes(t *testing.T) {
	row := regexp.MustCompile(`^\| (\d) \| ([A-Z_]+) \| \| (\d) \| ([A-Z_]+) \|$`)
	found := 0
	for n, line := range specification(t) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found++
		call, _ := strconv.Atoi(m[1])
		typ, _ := strconv.Atoi(m[3])
		if protocol.Call(call).String() != m[2] || protocol.Type(typ).String() != m[4] {
			t.Errorf("line %d: %s", n+1, line)
		}
	}
	if found != 5 {
		t.Errorf("%d rows of calls and types, want 5", found)
	}
}

func TestDocumentDatagrams(t *testing.T) {
	shapes := []protocol.Shape{protocol.CPUShape(), protocol.FPGAShape(true), protocol.FPGAShape(false)}
	row := regexp.MustCompile(`^\| (\d+) \| ([\d +]+) \| ([\d +]+) \| ([\d +]+) \|$`)
	found := 0
	for n, line := range specification(t) {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		found++
		words, err := strconv.ParseUint(m[1], 10, 32)
		if err != nil {
			t.Fatal(err)
		}
		for i, shape := range shapes {
			var lens []string
			for _, length := range datagrams(shape, uint32(words)) {
				lens = append(lens, strconv.FormatInt(length, 10))
			}
			if got := strings.Join(lens, " + "); got != m[2+i] {
				t.Errorf("line %d: %d words are cut into %s, but the document says %s", n+1, words, got, m[2+i])
			}
		}
	}
	if found < 10 {
		t.Errorf("%d rows of datagrams", found)
	}
}

// The rules are numbered without gaps, each rule has a source, and every cited number exists. The rules of the extended
// profile have a common source, and there are gaps between their groups.
func TestDocumentRules(t *testing.T) {
	rule := regexp.MustCompile(`^(?:- |\| )\*\*([A-Z])(\d+)\*\*(.*)$`)
	sources := regexp.MustCompile(`^ (\*\*\[(page|deployed|ours)\]\*\* )+\S`)
	cited := regexp.MustCompile(`\b[ABCDEHLMNPSTU][1-9]\d?\b`)
	last, exists := map[string]int{}, map[string]bool{}
	lines := specification(t)
	for n, line := range lines {
		m := rule.FindStringSubmatch(line)
		if m == nil {
			if strings.HasPrefix(line, "- **[") {
				t.Errorf("line %d: a source without a rule", n+1)
			}
			continue
		}
		number, _ := strconv.Atoi(m[2])
		exists[m[1]+m[2]] = true
		if m[1] == "E" {
			if number <= last["E"] {
				t.Errorf("line %d: rule E%d after E%d", n+1, number, last["E"])
			}
			last["E"] = number
			continue
		}
		if last[m[1]]++; number != last[m[1]] {
			t.Errorf("line %d: rule %s%d, want %s%d", n+1, m[1], number, m[1], last[m[1]])
		}
		if line[0] == '-' && !sources.MatchString(m[3]) {
			t.Errorf("line %d: rule %s%d has no source", n+1, m[1], number)
		}
	}
	if len(last) != 13 {
		t.Errorf("rules are %v", last)
	}
	for n, line := range lines {
		for _, id := range cited.FindAllString(line, -1) {
			if !exists[id] {
				t.Errorf("line %d: there is no rule %s", n+1, id)
			}
		}
		// The last cell of a row of a state table cites its rule.
		if m := rule.FindStringSubmatch(line); m != nil && line[0] == '|' {
			cells := strings.Split(line, "|")
			if id := strings.TrimSpace(cells[len(cells)-2]); !slices.Equal(cited.FindAllString(id, -1), []string{id}) {
				t.Errorf("line %d: %q is not a rule", n+1, id)
			}
		}
	}
}

func TestDocumentSections(t *testing.T) {
	next := 1
	lines := specification(t)
	text := strings.Join(lines, "\n")
	for _, line := range lines {
		title, ok := strings.CutPrefix(line, "## ")
		if !ok {
			continue
		}
		if !strings.HasPrefix(title, strconv.Itoa(next)+" ") {
			t.Errorf("section %d is %q", next, title)
		}
		next++
		// Anchors as GitHub makes them.
		anchor := strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(title, "'", ""), " ", "-"))
		if !strings.Contains(text, "(#"+anchor+")") {
			t.Errorf("the contents do not link to #%s", anchor)
		}
	}
	for _, m := range regexp.MustCompile(`\]\(([^#)]+)\)`).FindAllStringSubmatch(text, -1) {
		if _, err := os.Stat("../docs/" + m[1]); err != nil {
			t.Error(err)
		}
	}
}
