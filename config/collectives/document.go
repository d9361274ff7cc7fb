// Package collectives reads and writes tables of algorithms for collective operations as YAML files, and parses the choice
// of an algorithm given as text.
package collectives

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
	"github.com/zrlmpi/zrlmpid/mpe/coll"
	"github.com/zrlmpi/zrlmpid/mpe/coll/choice"
)

// Version is that of the file.
const Version = 1

// Document is a table as its file has it: what was decided, and the medians that show
// why.
type Document struct {
	// Version is Version.
	Version int `yaml:"version" json:"version"`
	// Estimated: the times are those of formulas. Nothing was measured.
	Estimated bool     `yaml:"estimated,omitempty" json:"estimated,omitempty"`
	Measured  Measured `yaml:"measured" json:"measured"`
	// The tables of the classes; nil if there is none.
	Memory                *ClassTable `yaml:"memory,omitempty" json:"memory,omitempty"`
	Network               *ClassTable `yaml:"network,omitempty" json:"network,omitempty"`
	OversubscribedMemory  *ClassTable `yaml:"oversubscribed_memory,omitempty" json:"oversubscribed_memory,omitempty"`
	OversubscribedNetwork *ClassTable `yaml:"oversubscribed_network,omitempty" json:"oversubscribed_network,omitempty"`
}

// Class returns where the table of a class is.
func (d *Document) Class(class choice.Class) **ClassTable {
	switch class {
	case choice.Memory:
		return &d.Memory
	case choice.OversubscribedMemory:
		return &d.OversubscribedMemory
	case choice.OversubscribedNetwork:
		return &d.OversubscribedNetwork
	}
	return &d.Network
}

// Each calls f with the classes that have a table.
func (d *Document) Each(f func(choice.Class, *ClassTable)) {
	for _, class := range choice.Classes {
		if t := *d.Class(class); t != nil {
			f(class, t)
		}
	}
}

// Measured says where the medians come from. It decides nothing.
type Measured struct {
	CPU     string `yaml:"cpu,omitempty" json:"cpu,omitempty"`
	Cores   int    `yaml:"cores,omitempty" json:"cores,omitempty"`
	System  string `yaml:"system,omitempty" json:"system,omitempty"`
	Version string `yaml:"version,omitempty" json:"version,omitempty"`
	Time    string `yaml:"time,omitempty" json:"time,omitempty"`
	// Rounds is of how many rounds the medians are.
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty"`
}

// ClassTable is the table of a class.
type ClassTable struct {
	// Over is what carried the messages.
	Over string `yaml:"over,omitempty" json:"over,omitempty"`
	Link Link   `yaml:"link" json:"link"`
	// Collectives has an entry for each number of ranks of each collective.
	Collectives []Entry `yaml:"collectives" json:"collectives"`
}

// Link is choice.Link.
type Link struct {
	Alpha float64 `yaml:"alpha" json:"alpha"`
	Beta  float64 `yaml:"beta" json:"beta"`
}

// Entry is a collective of so many ranks.
type Entry struct {
	Collective Collective `yaml:"collective" json:"collective"`
	Ranks      int        `yaml:"ranks" json:"ranks"`
	// Choose are the decisions, in the order of UpTo; the last has none.
	Choose []Decision `yaml:"choose" json:"choose"`
	// Bytes are the lengths at which was measured, Call.Bytes, and Medians what
	// came of it.
	Bytes   []int    `yaml:"bytes,flow,omitempty" json:"bytes,omitempty"`
	Medians []Series `yaml:"medians,omitempty" json:"medians,omitempty"`
}

// Decision is how calls of a range of lengths are carried out.
type Decision struct {
	// UpTo is the greatest length in bytes of the range; nil is any.
	UpTo *bytesize.Size `yaml:"up_to,omitempty" json:"up_to,omitempty"`
	// By are choices, the fastest first: the first that can carry out the call is
	// taken.
	By []choice.Choice `yaml:"by" json:"by"`
}

// Series is what was measured of a choice.
type Series struct {
	By choice.Choice `yaml:"by" json:"by"`
	// Micros has a median in microseconds for each of Entry.Bytes; 0 where the choice
	// was not measured.
	Micros []float64 `yaml:"us" json:"us"`
}

// MarshalYAML has it in one line.
func (d Decision) MarshalYAML() (any, error) {
	type plain Decision
	return oneLine(plain(d))
}

// MarshalYAML has it in one line.
func (s Series) MarshalYAML() (any, error) {
	type plain Series
	return oneLine(plain(s))
}

// MarshalYAML has it in one line.
func (l Link) MarshalYAML() (any, error) {
	type plain Link
	return oneLine(plain(l))
}

func oneLine(v any) (*yaml.Node, error) {
	var n yaml.Node
	err := n.Encode(v)
	n.Style = yaml.FlowStyle
	return &n, err
}

// Decide makes the decisions of an entry from its medians, as choice.Decide has it.
func (e *Entry) Decide(worth float64) {
	medians := make([]choice.Series, len(e.Medians))
	for i, s := range e.Medians {
		medians[i] = choice.Series(s)
	}
	e.Choose = nil
	for _, s := range choice.Decide(coll.Collective(e.Collective), e.Bytes, medians, worth) {
		d := Decision{By: s.By}
		if s.UpTo != math.MaxInt {
			end := bytesize.Size(s.UpTo)
			d.UpTo = &end
		}
		e.Choose = append(e.Choose, d)
	}
}

// Collective is a coll.Collective by its choice.Name.
type Collective coll.Collective

// MarshalText returns choice.Name.
func (c Collective) MarshalText() ([]byte, error) {
	return []byte(choice.Name(coll.Collective(c))), nil
}

// UnmarshalText is ParseName.
func (c *Collective) UnmarshalText(text []byte) error {
	parsed, err := ParseName(string(text))
	*c = Collective(parsed)
	return err
}

// Table is a choice.Table and the document that it was made of.
type Table struct {
	*choice.Table
	doc  Document
	rows map[choice.Class]choice.Rows
}

// Rows returns what is decided for each class. It must not be changed.
func (t *Table) Rows() map[choice.Class]choice.Rows { return t.rows }

// Load reads a table. name is the file's in errors, which are *strictyaml.Error joined,
// with the line and what is possible, or wrap strictyaml.ErrTooLarge or the reader's.
func Load(r io.Reader, name string) (*Table, error) {
	var d Document
	source, err := strictyaml.Decode(r, name, &d)
	if err != nil {
		return nil, err
	}
	return compile(&d, &source)
}

// New makes a table. The errors are *strictyaml.Error, joined. The document must not be
// changed any more.
func New(d *Document) (*Table, error) { return compile(d, new(strictyaml.Source)) }

const header = `# Which algorithm runs a collective, and why. zrlbench tune writes such a file; the
# keys are those of docs/collectives.md. Decisions may be changed by hand; all ranks of a
# cluster need the same.
`

// Write writes the table as a file that Load reads.
func (t *Table) Write(w io.Writer) error {
	b := bytes.NewBufferString(header)
	enc := yaml.NewEncoder(b) // which would not wrap the error of w
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&t.doc), enc.Close()); err != nil {
		return fmt.Errorf("table of collectives: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Document gives what the table was made of. It must not be changed.
func (t *Table) Document() *Document { return &t.doc }
