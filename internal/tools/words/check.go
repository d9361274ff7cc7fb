package main

import (
	"bytes"
	"fmt"
	"go/scanner"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// found describes a place where a retired word occurs.
type found struct {
	file  string
	line  int
	entry *entry
}

func (f found) String() string {
	return fmt.Sprintf("%s:%d: %q is retired: use %s", f.file, f.line, f.entry.text, f.entry.use)
}

// excepted lists files that may contain retired words: the lists of these words, and the changelog.
var excepted = []string{
	listPath, frequentPath, "docs/glossary.md", "CHANGELOG.md", "internal/tools/words/words_test.go",
}

// skipped lists folders that are not searched.
var skipped = []string{".git", "bin", "node_modules"}

// kinds lists the suffixes of the names of files that are searched.
var kinds = []string{
	".go", ".md", ".yaml", ".yml", ".lua", ".html", ".tmpl", ".js", ".json", ".css", ".sh", ".c", ".h", ".cpp", ".hpp",
	".service", ".conf", "Makefile", "Dockerfile",
}

// check returns the retired words in the files of a repository, in the order of files and lines.
func check(repository fs.FS, l *list) ([]found, error) {
	var all []found
	err := walk(repository, func(name string, text []byte) { all = append(all, l.search(name, text)...) })
	return all, err
}

// walk calls f for each file that is searched.
func walk(repository fs.FS, f func(name string, text []byte)) error {
	return fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(skipped, d.Name()):
			return fs.SkipDir
		case d.IsDir(), slices.Contains(excepted, name),
			!slices.ContainsFunc(kinds, func(end string) bool { return strings.HasSuffix(name, end) }):
			return nil
		}
		text, err := fs.ReadFile(repository, name)
		if err == nil {
			f(name, text)
		}
		return err
	})
}

// search returns the retired words in a file. In code, it searches for all identifiers. In other text, it searches only
// for identifiers that cannot be English words, such as retired_name or RetiredName. In comments, string literals and
// documents, it also searches for phrases; it ignores case, and a phrase may continue on the next line.
func (l *list) search(name string, text []byte) []found {
	prose, code := text, text
	switch path.Ext(name) {
	case ".go":
		prose, code = split(text)
	case ".md":
		code = nil
	}
	var all []found
	line, at := 1, 0
	words(text, func(from, to int) {
		word := string(text[from:to])
		line += bytes.Count(text[at:from], []byte("\n"))
		at = from
		if e := l.ids[word]; e != nil && (!isEnglish(word) || code != nil && code[from] != 0) {
			all = append(all, found{name, line, e})
		}
		if prose[from] == 0 {
			return
		}
		for _, e := range l.phrases[strings.ToLower(word)] {
			if follows(prose[to:], e.words[1:]) {
				all = append(all, found{name, line, e})
			}
		}
	})
	return all
}

// words calls f with the start and the end offset of each word in the text.
func words(text []byte, f func(from, to int)) {
	from := -1
	for at := 0; at < len(text); {
		r, size := rune(text[at]), 1
		if r >= utf8.RuneSelf {
			r, size = utf8.DecodeRune(text[at:])
		}
		isPart := r == '_' || r < utf8.RuneSelf && (r|0x20 >= 'a' && r|0x20 <= 'z' || r >= '0' && r <= '9') ||
			r >= utf8.RuneSelf && unicode.IsLetter(r)
		switch {
		case isPart && from < 0:
			from = at
		case !isPart && from >= 0:
			f(from, at)
			from = -1
		}
		at += size
	}
	if from >= 0 {
		f(from, len(text))
	}
}

// isEnglish reports whether an identifier could be an English word: it consists of letters, of which only the first may
// be a capital.
func isEnglish(id string) bool {
	return id[1:] == strings.ToLower(id[1:]) && !strings.ContainsAny(id, "_.")
}

// follows reports whether text continues with the given words. They are separated by white space, which includes
// comment markers that split has replaced.
func follows(text []byte, want []string) bool {
	for _, w := range want {
		rest := bytes.TrimLeft(text, " \t\r\n")
		if len(rest) == len(text) || len(rest) < len(w) || !strings.EqualFold(string(rest[:len(w)]), w) {
			return false
		}
		text = rest[len(w):]
	}
	if len(want) == 0 || len(text) == 0 {
		return true
	}
	r, _ := utf8.DecodeRune(text)
	return r != '_' && !unicode.IsLetter(r) && !unicode.IsDigit(r)
}

// split separates the comments and string literals in Go code from its identifiers. Both results are as long as the
// text, and contain zero bytes in all other places. Blanks replace comment markers.
func split(text []byte) (prose, code []byte) {
	prose, code = make([]byte, len(text)), make([]byte, len(text))
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, text, func(token.Position, string) {}, scanner.ScanComments)
	commentEnd := -1
	for {
		pos, tok, literal := s.Scan()
		at := file.Offset(pos)
		switch tok {
		case token.EOF:
			return prose, code
		case token.IDENT:
			copy(code[at:], literal)
		case token.STRING:
			copy(prose[at:], text[at:min(at+len(literal), len(text))])
		case token.COMMENT:
			// Comments on consecutive lines belong together.
			if commentEnd >= 0 && len(bytes.TrimSpace(text[commentEnd:at])) == 0 {
				copy(prose[commentEnd:], text[commentEnd:at])
			}
			commentEnd = min(at+len(literal), len(text))
			copy(prose[at:], text[at:commentEnd])
			prose[at], prose[at+1] = ' ', ' '
		}
	}
}
