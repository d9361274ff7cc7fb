package pmi

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Limits of the lengths of a line and of its parts, in bytes. Launchers announce them to processes.
const (
	maxLine  = 4096
	maxName  = 256 // of a key-value space
	maxKey   = 64
	maxValue = 1024
)

// ErrMessage is returned for a line that violates the protocol.
var ErrMessage = errors.New("not a line of PMI-1")

// message is the content of a line: a command, followed by pairs of keys and values.
type message struct {
	command string
	pairs   []pair
}

type pair struct{ key, value string }

// parse parses a line without its end.
func parse(line string) (message, error) {
	var msg message
	for field := range strings.FieldsSeq(line) {
		key, value, found := strings.Cut(field, "=")
		switch {
		case !found || key == "":
			return message{}, fmt.Errorf("%w: %q has no key", ErrMessage, field)
		case len(msg.pairs) == 0 && msg.command == "":
			if key != "cmd" || value == "" {
				return message{}, fmt.Errorf("%w: it begins with %q, not with a command", ErrMessage, field)
			}
			msg.command = value
		default:
			msg.pairs = append(msg.pairs, pair{key, value})
		}
	}
	if msg.command == "" {
		return message{}, fmt.Errorf("%w: it is empty", ErrMessage)
	}
	return msg, nil
}

// formatLine formats a message as a line, including the line end. Keys and values alternate in pairs.
func formatLine(command string, pairs ...string) string {
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

// intValue returns the value of a key as a number, or 0 if the key is missing.
func (m *message) intValue(key string) (int, error) {
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

// isPlain reports whether a text may be used as a key or a value in a line.
func isPlain(text string, longest int) bool {
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
