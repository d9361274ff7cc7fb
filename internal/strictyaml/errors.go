package strictyaml

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a file. There may be several of them joined:
// errors.As finds the first.
type Error struct {
	// File is the name given to Decode, or empty.
	File string
	// Line is the line in that file, counted from 1, or 0.
	Line int
	// Key is the path of the key, as in "ranks[2].address", or empty.
	Key string
	// Problem says what is wrong and what to do about it.
	Problem string
}

// Error returns "file:line: key: problem", without what is not known.
func (e *Error) Error() string {
	var b strings.Builder
	if e.File != "" {
		b.WriteString(e.File)
		if e.Line > 0 {
			fmt.Fprintf(&b, ":%d", e.Line)
		}
		b.WriteString(": ")
	}
	if e.Key != "" {
		b.WriteString(e.Key + ": ")
	}
	return b.String() + e.Problem
}

// maxProblems is how many problems are reported in full: enough to correct a file in one
// pass, and few enough for a terminal.
const maxProblems = 20

// Source has the line of each key of a file. The zero Source is of no file.
type Source struct {
	File  string
	lines map[string]int
}

// NewSource returns the source of a file with the given lines of its keys.
func NewSource(file string, lines map[string]int) Source { return Source{file, lines} }

// Lines returns the lines of the keys.
func (s *Source) Lines() map[string]int { return s.lines }

// Has reports whether the file has the key.
func (s *Source) Has(key string) bool { return s.lines[key] > 0 }

// Line returns the line of the key, or of the nearest key around it that the
// file has, or of the first key of the file; 0 without a file.
func (s *Source) Line(key string) int {
	for {
		n := s.lines[key]
		if n > 0 || key == "" {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// Problems collects what is wrong with what came from a Source.
type Problems struct {
	source *Source
	errs   []error
	more   int
}

// NewProblems begins without any.
func NewProblems(s *Source) *Problems { return &Problems{source: s} }

// Add notes a problem of the given key, on the line on which the key is.
func (p *Problems) Add(key, format string, args ...any) {
	p.addAt(p.source.Line(key), key, format, args...)
}

func (p *Problems) addAt(line int, key, format string, args ...any) {
	if len(p.errs) >= maxProblems {
		p.more++
		return
	}
	p.errs = append(p.errs, &Error{p.source.File, line, key, fmt.Sprintf(format, args...)})
}

// Err returns every problem as an *Error, joined, of which there are so many at most
// that a terminal can show them; nil if there is none.
func (p *Problems) Err() error {
	if p.more > 0 {
		more := &Error{File: p.source.File, Problem: fmt.Sprintf("and %d more problems", p.more)}
		return errors.Join(append(p.errs[:len(p.errs):len(p.errs)], more)...)
	}
	return errors.Join(p.errs...)
}

// The longest quotation of a value and the longest error about one, in bytes: a file may
// hold a megabyte in one value.
const (
	maxQuoted  = 60
	maxMessage = 300
)

// Quote quotes a value of a file, or the beginning of it.
func Quote(s string) string { return fmt.Sprintf("%q", Cut(s)) }

// Cut returns a value of a file, or the beginning of it.
func Cut(s string) string { return cut(s, maxQuoted) }

func cut(s string, longest int) string {
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
