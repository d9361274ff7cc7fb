package bench

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// targetsBlock is the name of the document block with the figures of all measured machines: a row for each target, and
// a column for each machine.
const targetsBlock = "targets"

// Rows above the targets.
const (
	wakeUpRow = "Wake-up of a thread that slept 1 ms"
	runRow    = "Last run"
)

// machineTable is the table of a targets block.
type machineTable struct {
	machines []string
	// cells maps the names of rows and machines to cells.
	cells map[string]map[string]string
}

// parseMachines parses the table written by text. It ignores surrounding text.
func parseMachines(text string) machineTable {
	t := machineTable{cells: map[string]map[string]string{}}
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case len(cells) < 3 || strings.HasPrefix(cells[0], "--"):
		case t.machines == nil:
			t.machines = cells[2:]
		default:
			row := map[string]string{}
			for i, cell := range cells[2:min(len(cells), 2+len(t.machines))] {
				row[t.machines[i]] = cell
			}
			t.cells[cells[0]] = row
		}
	}
	return t
}

// set sets the cell of a machine.
func (t *machineTable) set(row, machine, cell string) {
	if t.cells[row] == nil {
		t.cells[row] = map[string]string{}
	}
	t.cells[row][machine] = cell
}

// add writes the figures of a run into the column of its machine. Figures that the run did not measure are unchanged.
func (t *machineTable) add(r *Report) {
	machine := r.Machine.processors()
	if !slices.Contains(t.machines, machine) {
		t.machines = append(t.machines, machine)
	}
	if r.Machine.WakeUp > 0 {
		t.set(wakeUpRow, machine, r.Machine.wakeUp())
	}
	t.set(runRow, machine, r.Machine.Time+", zrlmpid "+r.Machine.Version)
	for _, v := range r.verdicts() {
		if v.measured != nil {
			t.set(v.name, machine, v.cell())
		}
	}
}

// text returns the table as Markdown, without rows of targets that no longer exist.
func (t *machineTable) text() string {
	all := &table{title: "Targets, and figures on each machine; bold figures miss the target", headings: append([]string{"what", "target"}, t.machines...)}
	row := func(name, target string) {
		cells := []string{name, target}
		for _, m := range t.machines {
			cell := t.cells[name][m]
			if cell == "" {
				cell = none
			}
			cells = append(cells, cell)
		}
		all.add(cells...)
	}
	row(wakeUpRow, "")
	row(runRow, "")
	for _, target := range targets {
		row(target.name, target.text())
	}
	var b strings.Builder
	all.write(&b, true)
	return b.String()
}

// updateTargets writes the figures of a run into a document's table of targets.
func (r *Report) updateTargets(file string) error {
	doc, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	_, old, _, err := cutBlock(string(doc), targetsBlock)
	if err != nil {
		return err
	}
	t := parseMachines(old)
	t.add(r)
	return updateDocument(file, []block{{targetsBlock, t.text()}})
}

// TestMachines checks that a run changes only its machine's column, in the rows that it measured.
func TestMachines(t *testing.T) {
	file := newDocument(t, "about\n"+beginMark(targetsBlock)+"\n"+endMark(targetsBlock)+"\nmore\n")
	on := func(cpu, version string, workloads ...string) string {
		t.Helper()
		r := runOf(version, workloads...)
		r.Machine.CPU, r.Machine.WakeUp, r.Machine.WakeUpP90 = cpu, 3, 5
		if err := r.updateTargets(file); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	line := func(text, name string) string {
		for line := range strings.Lines(text) {
			if strings.Contains(line, " "+name+" |") {
				return strings.Join(strings.Fields(line), " ")
			}
		}
		return ""
	}
	const share = "cloudfpga, 1,000,000 words: bandwidth by a raw stream's with UDP_SEGMENT and UDP_GRO"
	one := on("Abacus", "one", "pingpong", "stream")
	if got := line(one, share); got != "| "+share+" | at least 0.6 | **0.008** |" {
		t.Error(got)
	}
	if again := on("Abacus", "one", "pingpong", "stream"); again != one {
		t.Errorf("the second time it is different:\n%s", again)
	}
	on("Slide rule", "second", "ring")
	all := on("Abacus", "third", "stream")
	for _, x := range []struct{ name, want string }{
		{"what", "| what | target | 2 × Abacus | 2 × Slide rule |"},
		{share, "| " + share + " | at least 0.6 | **0.008** | – |"},
		{wakeUpRow, "| " + wakeUpRow + " | | 3.00 µs (p90 5.00 µs) | 3.00 µs (p90 5.00 µs) |"},
		{runRow, "| " + runRow + " | | time of third, zrlmpid third | time of second, zrlmpid second |"},
	} {
		if got := line(all, x.name); got != x.want {
			t.Errorf("%s instead of %s", got, x.want)
		}
	}
	if !strings.HasPrefix(all, "about\n") || !strings.HasSuffix(all, "\nmore\n") {
		t.Error(all)
	}
	if err := runOf("one", "ring").updateTargets(newDocument(t, "about\n")); err == nil || !strings.Contains(err.Error(), "there is no line <!-- bench: targets -->") {
		t.Error(err)
	}
}

// TestMissedTargets checks that the document explains exactly the targets missed by a machine.
func TestMissedTargets(t *testing.T) {
	text, err := os.ReadFile("../../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, rest, err := cutBlock(string(text), targetsBlock)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(rest, "\n### Missed targets\n")
	if !found {
		t.Fatal("no section about missed targets")
	}
	section, _, _ := strings.Cut(rest, "\n## ")
	reasons := map[string]string{}
	for line := range strings.Lines(section) {
		if cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|"); len(cells) == 2 {
			for target := range strings.SplitSeq(cells[0], "<br>") {
				reasons[strings.TrimSpace(target)] = strings.TrimSpace(cells[1])
			}
		}
	}
	all := parseMachines(block)
	for _, target := range targets {
		missed := slices.ContainsFunc(all.machines, func(m string) bool { return strings.HasPrefix(all.cells[target.name][m], "**") })
		if has := reasons[target.name] != ""; has != missed {
			t.Errorf("%s: missed on a machine: %v, a reason given: %v", target.name, missed, has)
		}
	}
}
