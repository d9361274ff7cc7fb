package main

import (
	"fmt"
	"slices"
	"strings"
)

// listPath is the path of the list of retired words, relative to the root of the repository.
const listPath = "internal/tools/words/retired.txt"

// entry is a retired identifier or phrase.
type entry struct {
	text  string
	use   string   // the replacement
	words []string // the words of a phrase, in lower case
}

// list holds the retired words and phrases, indexed for the search.
type list struct {
	entries []*entry
	ids     map[string]*entry   // by identifier
	phrases map[string][]*entry // by first word
}

// parseList parses a list. A line is a comment, "id NAME = REPLACEMENT" or "prose PHRASE = REPLACEMENT".
func parseList(text string) (*list, error) {
	l := &list{ids: map[string]*entry{}, phrases: map[string][]*entry{}}
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		retired, use, ok := strings.Cut(line, "=")
		kind, what, isEntry := strings.Cut(strings.TrimSpace(retired), " ")
		what, use = strings.TrimSpace(what), strings.TrimSpace(use)
		if !ok || !isEntry || what == "" || use == "" || kind != "id" && kind != "prose" {
			return nil, fmt.Errorf("line %d: %q is not \"id NAME = USE\" or \"prose PHRASE = USE\"", n, line)
		}
		e := &entry{text: what, use: use}
		if err := l.add(kind, e); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
	}
	return l, nil
}

func (l *list) add(kind string, e *entry) error {
	if kind == "id" {
		if l.ids[e.text] != nil {
			return fmt.Errorf("id %q is listed twice", e.text)
		}
		l.ids[e.text] = e
	} else {
		e.words = strings.Fields(strings.ToLower(e.text))
		first := e.words[0]
		for _, other := range l.phrases[first] {
			if slices.Equal(other.words, e.words) {
				return fmt.Errorf("phrase %q is listed twice", e.text)
			}
		}
		l.phrases[first] = append(l.phrases[first], e)
	}
	l.entries = append(l.entries, e)
	return nil
}
