package strictyaml

import (
	"errors"
	"fmt"
	"strings"
)

// Error describes a problem in a file. If a returned error joins several of them, errors.As finds the first.
type Error struct {
	// File is the name given to Decode, or empty.
	File string
	// Line is the line in that file, counted from 1, or 0.
	Line int
	// Key is the path of the key, as in "ranks[2].address", or empty.
	Key string
	// Problem describes the problem and a remedy.
	Problem string
}

// Error returns "file:line: key: problem", without unknown parts.
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

// maxProblems is the maximum number of problems that are reported in full. It is large enough to correct a file in one
// pass, and small enough for a terminal.
const maxProblems = 20

// Source maps each key in a configuration file to its line. The zero Source has no file.
type Source struct {
	File  string
	lines map[string]int
}

// NewSource returns a Source for the named file, given the line of each key.
func NewSource(file string, lines map[string]int) Source { return Source{file, lines} }

// Lines returns the lines of the keys.
func (s *Source) Lines() map[string]int { return s.lines }

// Has reports whether the key occurs in the file.
func (s *Source) Has(key string) bool { return s.lines[key] > 0 }

// Line returns the line of the given key. If the file does not contain the key, it returns the line of the nearest
// enclosing key, or else of the first key of the file. It returns 0 if there is no file.
func (s *Source) Line(key string) int {
	for {
		n := s.lines[key]
		if n > 0 || key == "" {
			return n
		}
		key = key[:max(0, strings.LastIndexAny(key, ".["))]
	}
}

// Problems collects the problems of a Source.
type Problems struct {
	source  *Source
	errs    []error
	omitted int
}

// NewProblems returns an empty Problems.
func NewProblems(s *Source) *Problems { return &Problems{source: s} }

// Add adds a problem of the given key, on the line of the key.
func (p *Problems) Add(key, format string, args ...any) {
	p.addAt(p.source.Line(key), key, format, args...)
}

func (p *Problems) addAt(line int, key, format string, args ...any) {
	if len(p.errs) >= maxProblems {
		p.omitted++
		return
	}
	p.errs = append(p.errs, &Error{p.source.File, line, key, fmt.Sprintf(format, args...)})
}

// Err returns the problems as joined *Error values, or nil without problems. If there are more than maxProblems, it
// only states the number of the others.
func (p *Problems) Err() error {
	if p.omitted > 0 {
		more := &Error{File: p.source.File, Problem: fmt.Sprintf("and %d more problems", p.omitted)}
		return errors.Join(append(p.errs[:len(p.errs):len(p.errs)], more)...)
	}
	return errors.Join(p.errs...)
}

// The maximum lengths, in bytes, of a quoted value and of an error about one. Both are limited because a value may be a
// megabyte long.
const (
	maxQuoted  = 60
	maxMessage = 300
)

// Quote quotes a value from a file for an error message, shortened if necessary.
func Quote(s string) string { return fmt.Sprintf("%q", Shorten(s)) }

// Shorten shortens a value of a file if necessary.
func Shorten(s string) string { return shorten(s, maxQuoted) }

func shorten(s string, longest int) string {
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
