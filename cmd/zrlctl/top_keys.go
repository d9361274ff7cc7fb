package main

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// key identifies a pressed key. It is a character, or one of the constants below.
type key rune

// Keys that are not characters.
const (
	keyUp key = -1 - iota
	keyDown
	keyPageUp
	keyPageDown
	keyHome
	keyEnd
	keyEscape
	keyEnter
	keyBackspace
	keyInterrupt
	keySuspend
)

// escapeKeys maps the characters that follow ESC [ or ESC O to keys.
var escapeKeys = map[string]key{
	"A": keyUp, "B": keyDown, "H": keyHome, "F": keyEnd, "5~": keyPageUp, "6~": keyPageDown, "1~": keyHome,
	"4~": keyEnd, "7~": keyHome, "8~": keyEnd,
}

var controlKeys = map[byte]key{
	'\r': keyEnter, '\n': keyEnter, 0x7f: keyBackspace, '\b': keyBackspace, 0x03: keyInterrupt, 0x04: keyInterrupt,
	0x1a: keySuspend,
}

// maxSequence is the maximum length of an escape sequence.
const maxSequence = 16

// keyParser parses terminal input, which may arrive in pieces of any length.
type keyParser struct{ incomplete []byte }

// parse returns the keys in a piece of input. It keeps an incomplete sequence for the next piece. It treats a single
// ESC at the end as a key.
func (p *keyParser) parse(piece []byte) []key {
	in := append(p.incomplete, piece...)
	p.incomplete = nil
	var keys []key
	for len(in) > 0 {
		switch {
		case in[0] == 0x1b && len(in) > 1 && (in[1] == '[' || in[1] == 'O'):
			n := 2
			for n < len(in) && (in[n] < 0x40 || in[n] > 0x7e) && n < maxSequence {
				n++
			}
			if n == len(in) {
				p.incomplete = append([]byte(nil), in...)
				return keys
			}
			if k, known := escapeKeys[string(in[2:n+1])]; known {
				keys = append(keys, k)
			}
			in = in[n+1:]
		case in[0] == 0x1b:
			keys, in = append(keys, keyEscape), in[1:]
		case in[0] < ' ' || in[0] == 0x7f:
			if k, known := controlKeys[in[0]]; known {
				keys = append(keys, k)
			}
			in = in[1:]
		case !utf8.FullRune(in):
			p.incomplete = append([]byte(nil), in...)
			return keys
		default:
			r, n := utf8.DecodeRune(in)
			if r != utf8.RuneError {
				keys = append(keys, key(r))
			}
			in = in[n:]
		}
	}
	return keys
}

// editLine applies a pressed key to a line of input. It returns the new line, and reports whether the key ends the
// input.
func editLine(line string, k key) (string, bool) {
	switch {
	case k == keyEnter:
		return line, true
	case k == keyEscape:
		return "", true
	case k == keyBackspace:
		_, n := utf8.DecodeLastRuneInString(line)
		return line[:len(line)-n], false
	case k > 0 && unicode.IsPrint(rune(k)) && utf8.RuneCountInString(line) < 100:
		return line + string(rune(k)), false
	}
	return line, false
}

// keyHelp explains the keys. Each entry is one line of the help.
var keyHelp = strings.Split(`q, Ctrl-C        quit
j, k, arrows     scroll by a line
Space, b, Pages  scroll by a page
g, G             go to the beginning, to the end
p                pause, resume
s                sort peers by problems, traffic, round trip, rank
/                filter: 17 is a rank, 0>17 a pair, other words are parts of
                 addresses, profiles, errors; Enter keeps it, Escape clears it
?                show or hide these keys`, "\n")
