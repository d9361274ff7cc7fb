package collectives

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// small is a table with one entry of each form.
const small = `
version: 1
memory:
  over: shm
  link: {alpha: 1000, beta: 0.1}
  collectives:
    - collective: bcast
      ranks: 8
      choose:
        - {up_to: 8, by: [flat]}
        - {up_to: 4096, by: ['atomic:100', 'chain:7', binomial]}
        - {by: ['chain:auto']}
      bytes: [8, 16]
      medians:
        - {by: flat, us: [1.5, 0]}
    - collective: gather
      ranks: 2
      choose: [{by: [binomial]}]
oversubscribed_network:
  link: {alpha: 2000, beta: 0.2}
  collectives:
    - collective: alltoall
      ranks: 4
      choose: [{by: [gather-scatter]}]
`

func load(t testing.TB, text string) *Table {
	t.Helper()
	table, err := Load(strings.NewReader(text), "t.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// entry returns a table with one entry, for Bcast with 4 ranks, followed by rest.
func entry(rest string) string {
	return "version: 1\nmemory:\n  collectives:\n    - collective: bcast\n      ranks: 4\n" + rest
}

func TestLoadErrors(t *testing.T) {
	const good = "      choose: [{by: [binomial]}]\n"
	for _, x := range []struct{ name, text, want string }{
		{"empty", "", "t.yaml:1: version: 0 is not known: this zrlmpid reads version 1; write the table with its " +
			"zrlbench tune\n" +
			"t.yaml:1: no table in the document: add one for memory, for network, or both, and for oversubscribed hosts"},
		{"version", "version: 2\nmemory:\n  collectives: []\n",
			"t.yaml:1: version: 2 is not known: this zrlmpid reads version 1; write the table with its zrlbench tune"},
		{"class", "version: 1\nmemroy: {}\n",
			`t.yaml:2: unknown key "memroy" (did you mean "memory"?): the keys here are version, estimated, measured, memory, network, oversubscribed_memory, oversubscribed_network`},
		{"collective", entry(good + "    - {collective: allredcue, ranks: 2}\n"),
			`t.yaml:7: memory.collectives[1].collective: unknown collective "allredcue" (did you mean "allreduce"?): ` +
				`the collectives are barrier, bcast, reduce, allreduce, gather, scatter, allgather, alltoall, reduce_scatter, scan, exscan`},
		{"no collective", entry(good + "    - {ranks: 2}\n"),
			`t.yaml:7: memory.collectives[1].collective: missing: name the collective of the entry`},
		{"ranks", "version: 1\nmemory: {collectives: [{collective: scan, ranks: 1}]}\n",
			"t.yaml:2: memory.collectives[0].ranks: 1 is outside 2 to 65536"},
		{"twice", entry(good + "    - {collective: bcast, ranks: 4}\n"),
			"t.yaml:7: memory.collectives[1].ranks: there is another entry of bcast with 4 ranks: keep one of them"},
		{"nothing chosen", entry(""),
			"t.yaml:4: memory.collectives[0].choose: missing: give the choice, as in [{by: [binomial]}]"},
		{"no algorithm", entry("      choose: [{by: []}]\n"),
			"t.yaml:6: memory.collectives[0].choose[0].by: missing: name the algorithms to choose from"},
		{"algorithm", entry("      choose: [{by: [binomail]}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: bcast has no algorithm "binomail" (did you mean "binomial"?): ` +
				`it has binomial, flat, scatter-allgather, chain, atomic, tree, shared`},
		{"segment", entry("      choose: [{by: ['chain:4kb']}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: segments of "4kb": give a size from 1 to 1GiB, as in chain:64KiB`},
		{"segment of nothing", entry("      choose: [{by: ['chain:0']}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: segments of "0": give a size from 1 to 1GiB, as in chain:64KiB`},
		{"segment of a whole", entry("      choose: [{by: ['flat:8']}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: flat does not segment its data: leave the segment out, or use chain or atomic or shared`},
		{"segment of a barrier",
			"version: 1\nmemory: {collectives: [{collective: barrier, ranks: 2, choose: [{by: ['toggle:8']}]}]}\n",
			`t.yaml:2: memory.collectives[0].choose[0].by[0]: toggle does not segment its data, nor does any other algorithm of barrier: leave the segment out`},
		{"auto without a link", entry("      choose: [{by: ['chain:auto']}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: chain:auto needs the link's alpha and beta: give them`},
		{"auto of another", entry("      choose: [{by: ['atomic:auto']}]\n"),
			`t.yaml:6: memory.collectives[0].choose[0].by[0]: atomic has no segments by formula: give it a size, or leave it out`},
		{"no end", entry("      choose: [{up_to: 8, by: [flat]}]\n"), "t.yaml:6: memory.collectives[0].choose[0]: " +
			"the last entry must cover all longer calls: leave up_to out, or add an entry without it"},
		{"an end too early", entry("      choose:\n        - {by: [flat]}\n        - {by: [binomial]}\n"),
			"t.yaml:7: memory.collectives[0].choose[0]: without up_to it is for all lengths, so it must be the last"},
		{"out of order", entry("      choose:\n        - {up_to: 2KiB, by: [flat]}\n        - {up_to: 2048, by: " +
			"[flat]}\n        - {by: [flat]}\n"),
			"t.yaml:8: memory.collectives[0].choose[1].up_to: 2KiB is not above the up_to of the previous entry: put " +
				"them in order"},
		{"lengths", entry(good + "      bytes: [8, 8]\n"), "t.yaml:7: memory.collectives[0].bytes[1]: 8 is out of " +
			"order: lengths must be 0 or more, in ascending order"},
		{"medians", entry(good + "      bytes: [8]\n      medians:\n        - {by: flat, us: [1, 2]}\n        - {by: " +
			"flt, us: [1]}\n        - {by: flat, us: [-1]}\n        - {by: flat, us: [.inf]}\n"),
			`t.yaml:12: memory.collectives[0].medians[3].us[0]: ".inf" is not a number`},
		{"more of medians", entry(good + "      bytes: [8]\n      medians:\n        - {by: flat, us: [1, 2]}\n       " +
			" - {by: flt, us: [1]}\n        - {by: flat, us: [-1]}\n"),
			"t.yaml:9: memory.collectives[0].medians[0].us: 2 medians for 1 lengths: give one for each length, 0 if " +
				"not measured\n" +
				"t.yaml:10: memory.collectives[0].medians[1].by: bcast has no algorithm \"flt\" (did you mean " +
				"\"flat\"?): it has binomial, flat, scatter-allgather, chain, atomic, tree, shared\n" +
				"t.yaml:11: memory.collectives[0].medians[2].us[0]: -1 is not a time: must be 0 or more"},
		{"link", "version: 1\nmemory: {link: {alpha: -1, beta: x}}\n",
			`t.yaml:2: memory.link.beta: "x" is not a number`},
		{"alpha", "version: 1\nmemory: {link: {alpha: -1}}\n",
			`t.yaml:2: memory.link.alpha: -1 is not a time: must be 0 or more`},
	} {
		t.Run(x.name, func(t *testing.T) {
			table, err := Load(strings.NewReader(x.text), "t.yaml")
			if table != nil || err == nil || err.Error() != x.want {
				t.Errorf("%v, %v\nwant\n%s", table, err, x.want)
			}
			if _, ok := errors.AsType[*strictyaml.Error](err); !ok {
				t.Errorf("an error of type %T", err)
			}
		})
	}
	if _, err := Load(strings.NewReader(strings.Repeat("#", strictyaml.MaxFileSize+1)), "t.yaml"); !errors.Is(err,
		strictyaml.ErrTooLarge) {
		t.Errorf("a file that is too large: %v", err)
	}
	if _, err := Load(iotest.ErrReader(io.ErrUnexpectedEOF), "t.yaml"); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a reader that fails: %v", err)
	}
	if _, err := New(&Document{Version: 1}); err == nil ||
		err.Error() != "no table in the document: add one for memory, for network, or both, and for "+
			"oversubscribed hosts" {
		t.Errorf("no file: %v", err)
	}
}

// TestWrite checks that a table is unchanged after writing and loading it, and that its JSON form has the same
// contents.
func TestWrite(t *testing.T) {
	table := load(t, small)
	var b bytes.Buffer
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	again := load(t, b.String())
	if !reflect.DeepEqual(again, table) {
		t.Errorf("written and read again:\n%+v, want\n%+v", again, table)
	}
	text, err := json.Marshal(table.Document())
	if err != nil {
		t.Fatal(err)
	}
	var d Document
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	same, err := New(&d)
	if err != nil || same.Hash() != table.Hash() {
		t.Errorf("%v, %s", err, text)
	}
	if err := table.Write(fullDisk{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("a writer that fails: %v", err)
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

// FuzzLoad checks that no file makes Load panic, and that every accepted table can be written and loaded again.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(small))
	f.Add([]byte(entry("      choose: [{up_to: 0, by: ['chain:1GiB']}, {by: [tree]}]\n      bytes: [0]\n      " +
		"medians: [{by: flat, us: [1e-300]}]\n")))
	f.Fuzz(func(t *testing.T, text []byte) {
		table, err := Load(bytes.NewReader(text), "f.yaml")
		if err != nil {
			return
		}
		var b bytes.Buffer
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
		again, err := Load(bytes.NewReader(b.Bytes()), "g.yaml")
		if err != nil || again.Hash() != table.Hash() {
			t.Fatalf("%v\n%s", err, b.Bytes())
		}
	})
}

// TestDocumentation checks that docs/collectives.md lists the algorithms of every collective and that its example table
// is valid.
func TestDocumentation(t *testing.T) {
	doc, err := os.ReadFile("../../docs/collectives.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rows, _ := strings.Cut(string(doc), "| collective | algorithms |\n|---|---|\n")
	rows, _, _ = strings.Cut(rows, "\n\n")
	seen := map[coll.Collective]bool{}
	for line := range strings.Lines(rows) {
		cells := strings.Split(line, "|")
		for _, name := range strings.Split(cells[1], ",") {
			of, err := ParseName(strings.Trim(name, " `"))
			if err != nil {
				t.Fatal(err)
			}
			seen[of] = true
			var want []string
			for _, a := range coll.Algorithms(of) {
				name := "`" + a.Name + "`"
				if a.Segmented {
					name = "**" + name + "**"
				}
				want = append(want, name)
			}
			if got := strings.TrimSpace(cells[2]); got != strings.Join(want, ", ") {
				t.Errorf("%s: %s, want %s", name, got, strings.Join(want, ", "))
			}
		}
	}
	if len(seen) != int(coll.Exscan) {
		t.Errorf("%d collectives", len(seen))
	}
	_, table, _ := strings.Cut(string(doc), "```yaml\n")
	table, _, _ = strings.Cut(table, "```")
	load(t, table)
}
