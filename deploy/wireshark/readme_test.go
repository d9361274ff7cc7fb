package wireshark_test

import (
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// everything returns a capture that contains all kinds of damage one after the other, each between its own pair of
// addresses.
func everything(t *testing.T) string {
	t.Helper()
	var all []packet
	for i, d := range damages() {
		for _, p := range d.packets {
			p.src, p.dst = strings.Replace(p.src, "10.0.0", "10.1."+itoa(i), 1),
				strings.Replace(p.dst, "10.0.0", "10.1."+itoa(i), 1)
			all = append(all, p)
		}
	}
	return write(t, all...)
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The filters in the README are valid, and each matches at least one frame.
func TestReadmeFilters(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(readme(t), "## Filters")
	table, _, _ = strings.Cut(table, "## Fields")
	rows := regexp.MustCompile("(?m)^\\| `([^`]+)` \\|").FindAllStringSubmatch(table, -1)
	if len(rows) < 10 {
		t.Fatalf("%d filters", len(rows))
	}
	file := everything(t)
	all := len(dissect(t, file))
	for _, row := range rows {
		filter := strings.ReplaceAll(row[1], `\|`, "|")
		out := tshark(t, "-r", file, "-Y", filter, "-T", "fields", "-e", "frame.number")
		switch n := strings.Count(out, "\n"); {
		case n == 0:
			t.Errorf("%s finds nothing", filter)
		case n == all && filter != "zrlmpi":
			t.Errorf("%s finds everything", filter)
		}
	}
}

// The README names all fields and preferences, and no others.
func TestReadmeNames(t *testing.T) {
	t.Parallel()
	text := readme(t)
	known := map[string]bool{"zrlmpi.lua": true, "zrlmpi.expert": true}
	for _, name := range fields {
		known[name] = true
	}
	severity := map[string]string{}
	for _, name := range experts {
		known["zrlmpi.expert."+name] = true
		row := regexp.MustCompile("(?m)^\\| `" + name + "` \\| (\\w+) \\|").FindStringSubmatch(text)
		if row == nil {
			t.Errorf("the README does not explain %s", name)
			continue
		}
		severity[name] = row[1]
	}
	for line := range strings.Lines(tshark(t, "-G", "currentprefs")) {
		name, value, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "#"), ": ")
		if !ok || !strings.HasPrefix(name, "zrlmpi.") {
			continue
		}
		known[name] = true
		if !regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| `?" + regexp.QuoteMeta(value) +
			"`? \\|").MatchString(text) {
			t.Errorf("the README does not say that %s is %s by default", name, value)
		}
	}
	if !known["zrlmpi.profile"] {
		t.Error("tshark lists no preferences")
	}
	for _, name := range fields {
		if !strings.Contains(text, "`"+name+"`") {
			t.Errorf("the README does not explain %s", name)
		}
	}
	for _, name := range regexp.MustCompile(`zrlmpi\.[a-z_.]*[a-z]`).FindAllString(text, -1) {
		if !known[name] {
			t.Errorf("the README speaks of %s", name)
		}
	}

	// tshark prints severities as numbers.
	names := map[int]string{0x200000: "chat", 0x400000: "note", 0x600000: "warning", 0x800000: "error"}
	args := []string{"-r", everything(t), "-T", "fields", "-e", "_ws.expert.severity"}
	for _, name := range experts {
		args = append(args, "-e", "zrlmpi.expert."+name)
	}
	for line := range strings.Lines(tshark(t, args...)) {
		columns := strings.Split(strings.TrimRight(line, "\n"), "\t")
		number, err := strconv.Atoi(columns[0])
		if err != nil {
			continue // none, or several
		}
		for i, name := range experts {
			if columns[i+1] == "" || severity[name] == "" {
				continue
			}
			if severity[name] != names[number] {
				t.Errorf("%s is of severity %s, but the README says %s", name, names[number], severity[name])
			}
			severity[name] = ""
		}
	}
	for name, unseen := range severity {
		if unseen != "" {
			t.Errorf("no damage shows %s alone", name)
		}
	}
}
