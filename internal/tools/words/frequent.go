package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// frequentPath is the path of the list of phrases, relative to the root of the repository.
const frequentPath = "internal/tools/words/frequent.txt"

// phrase describes a turn of phrase that is accepted as long as it occurs no more often than a given rate.
type phrase struct {
	text    string // as in the list
	pattern *regexp.Regexp
	limit   float64 // per 10,000 words
	use     string  // the replacement
}

// parseFrequent parses a list of frequent phrases. A line is a comment or "RATE PATTERN = REPLACEMENT".
func parseFrequent(text string) ([]phrase, error) {
	var phrases []phrase
	n := 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		rule, use, ok := strings.Cut(line, " = ")
		rate, pattern, also := strings.Cut(rule, " ")
		limit, err := strconv.ParseFloat(rate, 64)
		if !ok || !also || err != nil {
			return nil, fmt.Errorf("line %d: %q is not \"RATE PATTERN = USE\"", n, line)
		}
		compiled, err := regexp.Compile(`\b` + pattern + `\b`)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		phrases = append(phrases, phrase{pattern, compiled, limit, use})
	}
	return phrases, nil
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?```|`[^`]*`")
	blanks    = regexp.MustCompile(`[\s\x00]+`)
	proseWord = regexp.MustCompile(`[a-z']+`)
)

// checkFrequent returns a line for each phrase whose rate in documents and in the comments and strings of Go files is
// over its limit, with the files where it occurs most.
func checkFrequent(repository fs.FS, phrases []phrase) ([]string, error) {
	words := 0
	counts := make([]map[string]int, len(phrases))
	for i := range counts {
		counts[i] = map[string]int{}
	}
	err := walk(repository, func(name string, text []byte) {
		switch path.Ext(name) {
		case ".go":
			text, _ = split(text)
			text = bytes.ReplaceAll(text, []byte("//"), []byte(" "))
		case ".md":
			text = codeBlock.ReplaceAll(text, []byte("X"))
		default:
			return
		}
		text = bytes.ToLower(blanks.ReplaceAll(text, []byte(" ")))
		words += len(proseWord.FindAllIndex(text, -1))
		for i, p := range phrases {
			if n := len(p.pattern.FindAllIndex(text, -1)); n > 0 {
				counts[i][name] += n
			}
		}
	})
	if err != nil || words == 0 {
		return nil, err
	}
	var over []string
	for i, p := range phrases {
		total := 0
		var files []string
		for name, n := range counts[i] {
			total += n
			files = append(files, name)
		}
		rate := float64(total) * 1e4 / float64(words)
		if rate <= p.limit {
			continue
		}
		slices.SortFunc(files, func(a, b string) int {
			return cmp.Or(cmp.Compare(counts[i][b], counts[i][a]), cmp.Compare(a, b))
		})
		over = append(over, fmt.Sprintf("%q occurs %.2f times in 10,000 words, more than %.1f: use %s; most often in %s",
			p.text, rate, p.limit, p.use,
			strings.Join(files[:min(5, len(files))], ", ")))
	}
	return over, nil
}
