package strictyaml

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
)

// file has a field of every kind.
type file struct {
	Text    string         `yaml:"text"`
	Whole   int            `yaml:"whole"`
	Number  float64        `yaml:"number"`
	Flag    bool           `yaml:"flag"`
	Time    time.Duration  `yaml:"time"`
	Size    bytesize.Size  `yaml:"size"`
	Maybe   *bytesize.Size `yaml:"maybe"`
	List    []entry        `yaml:"list"`
	Section *entry         `yaml:"section"`
	private int
}

type entry struct {
	A int `yaml:"a"`
	B int `yaml:"b"`
}

func (e *entry) SetDefaults() { e.B = 7 }

func TestDecode(t *testing.T) {
	f := file{Text: "as it was", private: 3}
	s, err := Decode(strings.NewReader(`
whole: 0x10
number: 1.5e-3
flag: true
time: 1m
size: 64KiB
maybe: 3B
list:
  - {a: 1}
  - {b: 2}
section: {a: 4}
`), "f.yaml", &f)
	if err != nil {
		t.Fatal(err)
	}
	if f.Text != "as it was" || f.Whole != 16 || f.Number != 0.0015 || !f.Flag || f.Time != time.Minute ||
		f.Size != 64<<10 || *f.Maybe != 3 ||
		len(f.List) != 2 || f.List[0] != (entry{1, 7}) || f.List[1] != (entry{0, 2}) || *f.Section != (entry{4, 7}) ||
		f.private != 3 {
		t.Errorf("%+v", f)
	}
	if s.File != "f.yaml" || !s.Has("list[1].b") || s.Has("list[1].a") || s.Line("list[1].b") != 10 ||
		s.Line("list[1].a") != 10 || s.Line("list[9]") != 8 || s.Line("text") != 2 {
		t.Errorf("%+v", s)
	}
	// A float may be written as an integer, and a file may be empty.
	if _, err := Decode(strings.NewReader("number: 3\n"), "f.yaml", &f); err != nil || f.Number != 3 {
		t.Errorf("%v, %v", f.Number, err)
	}
	if _, err := Decode(strings.NewReader("# nothing\n"), "f.yaml", &f); err != nil {
		t.Error(err)
	}
}

func TestDecodeErrors(t *testing.T) {
	for text, want := range map[string]string{
		"number: x\n":      `f.yaml:1: number: "x" is not a number`,
		"number: .nan\n":   `f.yaml:1: number: ".nan" is not a number`,
		"number: -.inf\n":  `f.yaml:1: number: "-.inf" is not a number`,
		"number: 1e999\n":  `f.yaml:1: number: "1e999" is not a number`,
		"number: \"1\"\n":  `f.yaml:1: number: "1" is not a number`,
		"\nmaybe: 1XiB\n":  `f.yaml:2: maybe: "1XiB" is not a size: give bytes, or a number with KiB, MiB or GiB as in 16MiB`,
		"list: [{c: 1}]\n": `f.yaml:1: list[0]: unknown key "c": the keys here are a, b`,
		"private: 1\n":     `f.yaml:1: unknown key "private": the keys here are text, whole, number, flag, time, size, maybe, list, section`,
		"whole: 1\n---\nflag: 1": "f.yaml:2: a second document starts here: the file is one document, so remove the " +
			"--- or what follows it",
	} {
		var f file
		_, err := Decode(strings.NewReader(text), "f.yaml", &f)
		e, ok := errors.AsType[*Error](err)
		if !ok || err.Error() != want || e.File != "f.yaml" || e.Line == 0 {
			t.Errorf("%q: %v, want\n%s", text, err, want)
		}
	}
}

func TestProblems(t *testing.T) {
	p := NewProblems(&Source{File: "f.yaml", lines: map[string]int{"a": 3}})
	if p.Err() != nil {
		t.Error(p.Err())
	}
	p.Add("a.b[2]", "%d is too much", 5)
	if err := p.Err(); err == nil || err.Error() != "f.yaml:3: a.b[2]: 5 is too much" {
		t.Error(err)
	}
	for range 30 {
		p.Add("a", "again")
	}
	if lines := strings.Split(p.Err().Error(), "\n"); len(lines) != maxProblems+1 ||
		lines[maxProblems] != "f.yaml: and 11 more problems" {
		t.Errorf("%d lines, the last %s", len(lines), lines[len(lines)-1])
	}
}
