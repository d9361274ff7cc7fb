package config

import (
	"errors"
	"fmt"
	"strings"
)

// Error is one thing that is wrong with a configuration. Parse, Load and
// Validate return several of them joined: errors.As finds the first.
type Error struct {
	// File is the name given to Parse, or empty.
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

// ErrTooLarge is the error of a file of more than MaxFileSize bytes.
var ErrTooLarge = fmt.Errorf("the file is larger than %d bytes", MaxFileSize)

// maxProblems is how many problems are told in full: enough to repair a file
// at one go, not so many that a wrong file floods the terminal.
const maxProblems = 20

// source knows where in the file each key was. A Config made by New has none.
type source struct {
	file  string
	lines map[string]int
	// http: http.listen was given by the environment or by a flag.
	http bool
}

// line returns the line of the key, or of the nearest key around it that the
// file has.
func (s *source) line(key string) int {
	for {
		if n := s.lines[key]; n > 0 {
			return n
		}
		i := strings.LastIndexAny(key, ".[")
		if i < 0 {
			return 0
		}
		key = key[:i]
	}
}

// problems collects what is wrong.
type problems struct {
	source *source
	errs   []error
	more   int
}

// add notes a problem of the given key, on the line on which the key is.
func (p *problems) add(key, format string, args ...any) {
	p.addAt(p.source.line(key), key, format, args...)
}

func (p *problems) addAt(line int, key, format string, args ...any) {
	if len(p.errs) >= maxProblems {
		p.more++
		return
	}
	p.errs = append(p.errs, &Error{p.source.file, line, key, fmt.Sprintf(format, args...)})
}

func (p *problems) err() error {
	if p.more > 0 {
		more := &Error{File: p.source.file, Problem: fmt.Sprintf("and %d more problems", p.more)}
		return errors.Join(append(p.errs[:len(p.errs):len(p.errs)], more)...)
	}
	return errors.Join(p.errs...)
}

// The longest that is told of a value, and of an error about one, in bytes: a
// file may hold a megabyte in one value.
const (
	maxQuoted  = 60
	maxMessage = 300
)

// quote quotes what a file said.
func quote(s string) string { return fmt.Sprintf("%q", cut(s, maxQuoted)) }

func cut(s string, longest int) string {
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}
