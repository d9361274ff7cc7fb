// Package collectives reads and writes tables of algorithms for collective operations as YAML files, and parses the
// text form of a choice of an algorithm.
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

// Version is the version of the file format.
const Version = 1

// Document is the file form of a table: the decisions, and the medians that they are based on.
type Document struct {
	// Version must equal the constant Version.
	Version int `yaml:"version" json:"version"`
	// Estimated is set if the times come from formulas and nothing was measured.
	Estimated bool     `yaml:"estimated,omitempty" json:"estimated,omitempty"`
	Measured  Measured `yaml:"measured" json:"measured"`
	// Tables of the classes, or nil.
	Memory                *ClassTable `yaml:"memory,omitempty" json:"memory,omitempty"`
	Network               *ClassTable `yaml:"network,omitempty" json:"network,omitempty"`
	OversubscribedMemory  *ClassTable `yaml:"oversubscribed_memory,omitempty" json:"oversubscribed_memory,omitempty"`
	OversubscribedNetwork *ClassTable `yaml:"oversubscribed_network,omitempty" json:"oversubscribed_network,omitempty"`
}

// Class returns a pointer to the field with the table of a class.
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

// ForEachClass calls f for each class that has a table.
func (d *Document) ForEachClass(f func(choice.Class, *ClassTable)) {
	for _, class := range choice.Classes {
		if t := *d.Class(class); t != nil {
			f(class, t)
		}
	}
}

// Measured describes where the medians were measured. It does not affect the decisions.
type Measured struct {
	CPU     string `yaml:"cpu,omitempty" json:"cpu,omitempty"`
	Cores   int    `yaml:"cores,omitempty" json:"cores,omitempty"`
	System  string `yaml:"system,omitempty" json:"system,omitempty"`
	Version string `yaml:"version,omitempty" json:"version,omitempty"`
	Time    string `yaml:"time,omitempty" json:"time,omitempty"`
	// Rounds is the number of rounds that the medians were computed from.
	Rounds int `yaml:"rounds,omitempty" json:"rounds,omitempty"`
}

// ClassTable is the table of a class.
type ClassTable struct {
	// Transport is the transport of the messages.
	Transport string `yaml:"over,omitempty" json:"over,omitempty"`
	Link      Link   `yaml:"link" json:"link"`
	// Collectives contains an entry for each collective and number of ranks.
	Collectives []Entry `yaml:"collectives" json:"collectives"`
}

// Link is choice.Link in a file.
type Link struct {
	Alpha float64 `yaml:"alpha" json:"alpha"`
	Beta  float64 `yaml:"beta" json:"beta"`
}

// Entry describes a collective for one number of ranks.
type Entry struct {
	Collective Collective `yaml:"collective" json:"collective"`
	Ranks      int        `yaml:"ranks" json:"ranks"`
	// Decisions lists the decisions in ascending order of MaxBytes, which is nil in the last decision.
	Decisions []Decision `yaml:"choose" json:"choose"`
	// Bytes lists the measured lengths, as in Call.Bytes, and Medians holds the results.
	Bytes   []int    `yaml:"bytes,flow,omitempty" json:"bytes,omitempty"`
	Medians []Series `yaml:"medians,omitempty" json:"medians,omitempty"`
}

// Decision selects the algorithms for calls in a range of lengths.
type Decision struct {
	// MaxBytes is the greatest length in bytes of the range; nil means no limit.
	MaxBytes *bytesize.Size `yaml:"up_to,omitempty" json:"up_to,omitempty"`
	// Choices lists the choices, fastest first. A call uses the first one that supports it.
	Choices []choice.Choice `yaml:"by" json:"by"`
}

// Series is the measurements of a choice.
type Series struct {
	Choice choice.Choice `yaml:"by" json:"by"`
	// Micros holds the median in microseconds for each of Entry.Bytes, or 0 if it was not measured.
	Micros []float64 `yaml:"us" json:"us"`
}

// MarshalYAML puts the decision on one line.
func (d Decision) MarshalYAML() (any, error) {
	type plain Decision
	return flowNode(plain(d))
}

// MarshalYAML puts the series on one line.
func (s Series) MarshalYAML() (any, error) {
	type plain Series
	return flowNode(plain(s))
}

// MarshalYAML puts the link on one line.
func (l Link) MarshalYAML() (any, error) {
	type plain Link
	return flowNode(plain(l))
}

func flowNode(v any) (*yaml.Node, error) {
	var n yaml.Node
	err := n.Encode(v)
	n.Style = yaml.FlowStyle
	return &n, err
}

// Decide makes the decisions of an entry from its medians, with choice.DecideSpans.
func (e *Entry) Decide(worth float64) {
	medians := make([]choice.Series, len(e.Medians))
	for i, s := range e.Medians {
		medians[i] = choice.Series(s)
	}
	e.Decisions = nil
	for _, s := range choice.DecideSpans(coll.Collective(e.Collective), e.Bytes, medians, worth) {
		d := Decision{Choices: s.Choices}
		if s.MaxBytes != math.MaxInt {
			end := bytesize.Size(s.MaxBytes)
			d.MaxBytes = &end
		}
		e.Decisions = append(e.Decisions, d)
	}
}

// Collective is a coll.Collective whose text form is choice.CollectiveName.
type Collective coll.Collective

// MarshalText returns choice.CollectiveName.
func (c Collective) MarshalText() ([]byte, error) {
	return []byte(choice.CollectiveName(coll.Collective(c))), nil
}

// UnmarshalText implements encoding.TextUnmarshaler with ParseName.
func (c *Collective) UnmarshalText(text []byte) error {
	parsed, err := ParseName(string(text))
	*c = Collective(parsed)
	return err
}

// Table is a choice.Table that also contains the document from which it was made.
type Table struct {
	*choice.Table
	doc  Document
	rows map[choice.Class]choice.Rows
}

// Rows returns the decisions for each class. The caller must not modify them.
func (t *Table) Rows() map[choice.Class]choice.Rows { return t.rows }

// Load reads a table. name is the file name for errors. The error joins *strictyaml.Error values with the line and the
// valid values, or wraps strictyaml.ErrTooLarge or the reader's error.
func Load(r io.Reader, name string) (*Table, error) {
	var d Document
	source, err := strictyaml.Decode(r, name, &d)
	if err != nil {
		return nil, err
	}
	return newTable(&d, &source)
}

// New makes a table from a document, which must not be modified afterwards. The error joins *strictyaml.Error values.
func New(d *Document) (*Table, error) { return newTable(d, new(strictyaml.Source)) }

const fileHeader = `# Which algorithm runs a collective, and why. zrlbench tune writes such a file; the
# keys are documented in docs/collectives.md. Decisions may be changed by hand; all ranks of a
# cluster need the same.
`

// Write writes the table as a file that Load reads.
func (t *Table) Write(w io.Writer) error {
	b := bytes.NewBufferString(fileHeader)
	enc := yaml.NewEncoder(b) // buffered, because the encoder would not wrap an error of w
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&t.doc), enc.Close()); err != nil {
		return fmt.Errorf("table of collectives: %w", err)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// Document returns the document that the table was made from. The caller must not modify it.
func (t *Table) Document() *Document { return &t.doc }
