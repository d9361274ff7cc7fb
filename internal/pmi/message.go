package pmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The limits of a line and of what it contains, in bytes: those that launchers announce.
const (
	maxLine  = 4096
	maxName  = 256 // of a space of keys
	maxKey   = 64
	maxValue = 1024
)

// ErrMessage is matched by the error of a line that is not of the protocol.
var ErrMessage = errors.New("not a line of PMI-1")

// message is a line: its command, and pairs of key and value.
type message struct {
	command string
	pairs   []pair
}

type pair struct{ key, value string }

// parse reads a line without its end.
func parse(line string) (message, error) {
	var m message
	for field := range strings.FieldsSeq(line) {
		key, value, found := strings.Cut(field, "=")
		switch {
		case !found || key == "":
			return message{}, fmt.Errorf("%w: %q has no key", ErrMessage, field)
		case len(m.pairs) == 0 && m.command == "":
			if key != "cmd" || value == "" {
				return message{}, fmt.Errorf("%w: it begins with %q, not with a command", ErrMessage, field)
			}
			m.command = value
		default:
			m.pairs = append(m.pairs, pair{key, value})
		}
	}
	if m.command == "" {
		return message{}, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	return m, nil
}

// line returns the message as a line with its end. Pairs are keys and values in turn.
func line(command string, pairs ...string) string {
	var b strings.Builder
	b.WriteString("cmd=" + command)
	for i := 0; i < len(pairs); i += 2 {
		b.WriteString(" " + pairs[i] + "=" + pairs[i+1])
	}
	b.WriteByte('\n')
	return b.String()
}

// get returns the value of a key, or "".
func (m *message) get(key string) string {
	for _, p := range m.pairs {
		if p.key == key {
			return p.value
		}
	}
	return ""
}

// number returns the value of a key, which is a number, or 0 if it has none.
func (m *message) number(key string) (int, error) {
	text := m.get(key)
	if text == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("%w: %s=%q of %s is not a number", ErrMessage, key, text, m.command)
	}
	return n, nil
}

// plain reports whether a key or value can be in a line.
func plain(text string, longest int) bool {
	if text == "" || len(text) > longest {
		return false
	}
	for _, c := range []byte(text) {
		if c <= ' ' || c >= 0x7f {
			return false
		}
	}
	return true
}
