package strictyaml

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// yamlLine matches the beginning of an error text of the YAML library. The text must be parsed because the library
// reports the line nowhere else. For the first line of a file it omits the number.
var yamlLine = regexp.MustCompile(`^yaml: (?:line (\d+): )?`)

// parserErrors lists errors for which the YAML library reports a line number that is too low by one.
var parserErrors = []string{
	"did not find expected node content", "did not find expected '-' indicator", "did not find expected key",
	"did not find expected ',' or ']'", "did not find expected ',' or '}'", "did not find expected <document start>",
	"found undefined tag handle", "found incompatible YAML document",
}

// remedies lists the beginnings of the YAML library's error texts, each with advice on how to correct the file.
var remedies = []struct{ problem, remedy string }{
	{"mapping values are not allowed", `put each key on its own line, and quote a value that has ": " in it`},
	{"found character that cannot start any token", "quote the value that begins with it"},
	{"found unknown escape character", `write \\ for a backslash, or quote with '`},
	{"found undefined tag handle", "remove the tag"},
	{"found incompatible YAML document", "remove the directive"},
	{"found unknown directive name", "quote what begins with %"},
	{"did not find expected alphabetic or numeric character", "quote a value that begins with & or *"},
	{"exceeded max depth", "nest fewer lists and sections"},
}

// syntaxError explains an error of the YAML library. The returned error states the line of the cause, and how to
// correct it.
func syntaxError(name string, text []byte, err error) error {
	problem := err.Error()
	e := &Error{File: name}
	if m := yamlLine.FindStringSubmatch(problem); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		problem = problem[len(m[0]):]
	}
	if e.Line > 0 && slices.Contains(parserErrors, problem) {
		e.Line++
	}
	e.Line = max(1, min(e.Line, countLines(text)))
	remedy := "correct this line, or the one before it"
	for _, r := range remedies {
		if strings.HasPrefix(problem, r.problem) {
			remedy = r.remedy
		}
	}
	if f := findFault(text); f != nil && isValid(text, f.line-1) && (f.noticedLate || !isValid(text, f.line+1)) {
		e.Line, problem, remedy = f.line, f.problem, f.remedy
	}
	e.Problem = fmt.Sprintf("not valid YAML: %s: %s", problem, remedy)
	return e
}

// countLines returns the number of lines, at least 1.
func countLines(text []byte) int {
	return 1 + bytes.Count(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

// isValid reports whether the given number of lines at the beginning of a text are valid YAML.
func isValid(text []byte, lines int) bool {
	end := 0
	for range lines {
		n := bytes.IndexByte(text[end:], '\n')
		if n < 0 {
			end = len(text)
			break
		}
		end += n + 1
	}
	var doc yaml.Node
	return len(bytes.TrimSpace(text[:end])) == 0 || yaml.Unmarshal(text[:end], &doc) == nil
}

// fault describes a problem in a text, and how to correct it.
type fault struct {
	line            int
	problem, remedy string
	// noticedLate is true if the library may notice the problem more than one line later.
	noticedLate bool
}

// Unclosed returns the line of the last bracket or quote in a text that is not closed, with a remedy. It returns 0 if
// all are closed.
func Unclosed(text []byte) (line int, problem string) {
	l := layout{anyIndent: true}
	for i, s := range strings.Split(string(text), "\n") {
		l.addLine(i+1, s)
	}
	if f := l.unclosed(); f != nil {
		return f.line, f.problem + ": " + f.remedy
	}
	return 0, ""
}

// findFault searches for common mistakes with characters, tabs, indentation, brackets and quotes. It covers less of
// YAML than the library, which has already rejected the text.
func findFault(text []byte) *fault {
	if bytes.HasPrefix(text, []byte("\xff\xfe")) || bytes.HasPrefix(text, []byte("\xfe\xff")) {
		return nil // UTF-16
	}
	l := layout{block: -1}
	for i, s := range strings.Split(string(text), "\n") {
		s = strings.TrimSuffix(s, "\r")
		if f := badCharacter(i+1, s); f != nil {
			return f
		}
		l.addLine(i+1, s)
		if l.fault != nil {
			return l.fault
		}
	}
	return cmp.Or(l.unclosed(), l.alias)
}

// badCharacter returns the fault of a line that is not text: it contains control characters, or bytes that are not
// UTF-8.
func badCharacter(line int, s string) *fault {
	if !utf8.ValidString(s) {
		return &fault{line: line, problem: "bytes that are not UTF-8", remedy: "save the file as UTF-8"}
	}
	for _, r := range s {
		if unicode.IsControl(r) && !strings.ContainsRune("\t\r\u0085", r) {
			return &fault{line: line, problem: fmt.Sprintf("the control character %q", r), remedy: "remove it"}
		}
	}
	return nil
}

// layout tracks the indentation, brackets and quotes of a text, line by line.
type layout struct {
	fault *fault
	// alias describes the problem with the first YAML alias (*name) in the text.
	alias *fault
	// anyIndent ignores the indentation, as in JSON.
	anyIndent bool
	levels    []level
	// mayNest is true if a section or list, one level deeper, may begin after the last line.
	mayNest bool
	// block is the indentation of the key whose value is a multi-line block of text, or -1 outside of such a block.
	block int
	open  []bracket
	quote bracket // 0: none
	plain plain
}

// plain holds the most recent line without a key.
type plain struct {
	line, indent int
	text         string
}

// level describes a section or a list that following lines may continue.
type level struct {
	indent int
	list   bool
}

// bracket is an opening bracket or quote.
type bracket struct {
	char byte
	line int
}

func (l *layout) report(line int, problem, remedy string) {
	if l.fault == nil {
		l.fault = &fault{line: line, problem: problem, remedy: remedy}
	}
}

// unclosed returns the fault for the last bracket or quote that is still open, or nil.
func (l *layout) unclosed() *fault {
	switch n := len(l.open); {
	case l.quote.char != 0:
		return notClosed(l.quote, l.quote.char)
	case n > 0:
		return notClosed(l.open[n-1], closingBracket(l.open[n-1].char))
	}
	return nil
}

func notClosed(b bracket, by byte) *fault {
	return &fault{b.line, fmt.Sprintf("the %c is not closed", b.char), fmt.Sprintf("close it with %c", by), true}
}

func closingBracket(b byte) byte {
	if b == '{' {
		return '}'
	}
	return ']'
}

// addLine processes a line.
func (l *layout) addLine(number int, s string) {
	content := strings.TrimLeft(s, " ")
	indent := len(s) - len(content)
	inBlock := !l.anyIndent && len(l.open) == 0 && l.quote.char == 0
	switch {
	case inBlock && l.block >= 0 && (indent > l.block || strings.TrimSpace(content) == ""):
		return // text
	case inBlock:
		l.block = -1
		if blank := strings.TrimLeft(content, "\t"); blank == "" || blank[0] == '#' {
			return
		}
		if content[0] == '\t' {
			l.report(number, "a tab indents this line", "indent with spaces")
			return
		}
		if indent == 0 && (strings.HasPrefix(s, "---") || strings.HasPrefix(s, "...") || s[0] == '%') {
			l.levels, l.mayNest = nil, true
			return
		}
		content, indent = l.beginLine(number, content, indent)
	}
	l.scan(number, content)
	if inBlock && l.quote.char == 0 {
		l.endLine(content, indent)
	}
}

// beginLine processes the beginning of a line: the "- " of list entries, and the key. It returns the rest of the line
// and its indentation.
func (l *layout) beginLine(number int, content string, indent int) (string, int) {
	for content == "-" || strings.HasPrefix(content, "- ") {
		l.placeEntry(number, level{indent, true})
		rest := strings.TrimLeft(content[1:], " ")
		indent += len(content) - len(rest)
		content, l.mayNest = rest, true
	}
	if content == "" || content[0] == '#' {
		return content, indent
	}
	if isKey(content) {
		l.placeEntry(number, level{indent, false})
		return content, indent
	}
	if n := len(l.levels); n > 0 && !l.mayNest && l.levels[n-1] == (level{indent, false}) {
		l.noKey(number, content)
	}
	l.plain = plain{number, indent, content}
	return content, indent
}

func (l *layout) noKey(number int, content string) {
	l.report(number, Quote(content)+" is not a key with a value", "write a colon and a space after the key")
}

// isKey reports whether a line begins with a key.
func isKey(content string) bool {
	if q := content[0]; q == '"' || q == '\'' {
		end := strings.IndexByte(content[1:], q)
		return end >= 0 && strings.HasPrefix(strings.TrimLeft(content[end+2:], " "), ":")
	}
	if strings.ContainsRune("{[|>&*!", rune(content[0])) {
		return false
	}
	text, _, _ := strings.Cut(content, " #")
	return strings.Contains(text, ": ") || strings.HasSuffix(strings.TrimRight(text, " "), ":")
}

// placeEntry finds the section or list of an entry by its indentation.
func (l *layout) placeEntry(number int, at level) {
	left := len(l.levels)
	for left > 0 && l.levels[left-1].indent > at.indent {
		left--
	}
	closed := left < len(l.levels)
	l.levels = l.levels[:left]
	switch {
	case left == 0 || l.levels[left-1].indent < at.indent:
		if closed {
			l.report(number, fmt.Sprintf("%d spaces are before this line, and before no other of its section",
				at.indent),
				"indent all of a section by the same number")
		} else if !l.mayNest && left > 0 && l.plain.indent == at.indent && l.plain.line == number-1 {
			l.noKey(l.plain.line, l.plain.text)
		} else if !l.mayNest && left > 0 {
			l.report(number, "this line is indented more than the one before, which has a value",
				"indent both by the same number of spaces")
		}
		l.levels = append(l.levels, at)
	case l.levels[left-1].list == at.list:
	case at.list && l.mayNest && !closed: // a list may have the indentation of its key
		l.levels = append(l.levels, at)
	case !at.list && left > 1 && l.levels[left-2] == at:
		l.levels = l.levels[:left-1]
	case at.list:
		l.report(number, "a list entry among keys", "indent it more than the key of the list")
	default:
		l.report(number, "a key among list entries", "indent it by two more spaces, or begin it with - and a space")
	}
	l.mayNest = false
}

// endLine determines from the end of a line whether a section, a list or a block of text may begin on the next line.
func (l *layout) endLine(content string, indent int) {
	text, _, _ := strings.Cut(content, " #")
	text = strings.TrimRight(text, " \t")
	l.mayNest = len(l.open) == 0 && (text == "" || strings.HasSuffix(text, ":"))
	if word := text[strings.LastIndexAny(text, " \t")+1:]; word != "" && len(l.open) == 0 {
		switch word[0] {
		case '|', '>':
			l.block = indent
		case '&', '!':
			l.mayNest = true
		}
	}
}

// scan processes the brackets and quotes of a line.
func (l *layout) scan(number int, s string) {
	start := true // of a value
	closed := byte(0)
	for i := 0; i < len(s); i++ {
		if l.quote.char != 0 {
			if i = l.endQuote(s, i); l.quote.char != 0 {
				return
			}
			start, closed = false, s[i]
			continue
		}
		c := s[i]
		switch {
		case c == ' ' || c == '\t':
			continue
		case c == '#' && (i == 0 || s[i-1] == ' ' || s[i-1] == '\t'):
			return
		case closed != 0 && len(l.open) == 0 && !l.anyIndent && c != ':':
			l.afterClosing(number, closed, c)
			return
		case (c == '"' || c == '\'' && !l.anyIndent) && start:
			l.quote = bracket{c, number}
			continue
		case (c == '{' || c == '[') && start:
			l.open = append(l.open, bracket{c, number})
			continue
		case (c == '}' || c == ']') && len(l.open) > 0:
			l.close(number, c)
			closed = c
			continue
		case c == '*' && start && l.alias == nil:
			word := s[i:][:len(s[i:])-len(strings.TrimLeftFunc(s[i+1:], isWord))]
			l.alias = &fault{line: number, problem: Shorten(word) + " is an alias, which is not supported",
				remedy: "write the value out"}
		}
		separator := c == ',' && len(l.open) > 0 || (c == ':' || c == '-' && start) && (i+1 == len(s) || s[i+1] == ' ')
		start = separator || c == ':' && (closed == '"' || l.anyIndent)
		closed = 0
	}
}

func isWord(r rune) bool { return !strings.ContainsRune(" \t,[]{}", r) }

// afterClosing reports text that follows a closing bracket or quote, which must be the end of a value.
func (l *layout) afterClosing(number int, closed, c byte) {
	switch {
	case closed == c:
		l.report(number, fmt.Sprintf("a %c too many", c), "remove it")
	case closed == '"' || closed == '\'':
		if l.quote.line < number {
			l.reportLateClose(bracket{closed, l.quote.line}, number, closed, closed)
			return
		}
		l.report(number, fmt.Sprintf("text after the closing %c", closed), "quote all of the value")
	default:
		l.report(number, fmt.Sprintf("text after the closing %c", closed), "remove it, or put it on its own line")
	}
}

// endQuote returns the index at which the current quote ends, or the length of the line if it does not end there.
func (l *layout) endQuote(s string, i int) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] == '\\' && l.quote.char == '"':
			i++
		case s[i] == '\'' && l.quote.char == '\'' && i+1 < len(s) && s[i+1] == '\'':
			i++
		case s[i] == l.quote.char:
			l.quote.char = 0
			return i
		}
	}
	return len(s)
}

// reportLateClose reports a bracket or quote that is closed only by a later character of the same kind, next, on line
// number. The character by should have closed it where its value ends.
func (l *layout) reportLateClose(b bracket, number int, next, by byte) {
	if l.fault == nil {
		l.fault = &fault{b.line, fmt.Sprintf("the next %c behind this %c is on line %d", next, b.char, number),
			fmt.Sprintf("close it with %c where its value ends", by), true}
	}
}

// close closes the last bracket.
func (l *layout) close(number int, c byte) {
	last := l.open[len(l.open)-1]
	if closingBracket(last.char) != c {
		l.reportLateClose(last, number, c, closingBracket(last.char))
	}
	l.open = l.open[:len(l.open)-1]
}
