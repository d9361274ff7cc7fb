package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
)

// errImplausible means that decoding an answer would take far more memory than its text.
var errImplausible = errors.New("not an answer of a rank: it has too many elements for its length")

// decodeAnswer decodes the answer of a job's rank: a program of any user, which may send anything. Control
// characters in its strings, which could manipulate a terminal, become spaces.
func decodeAnswer(text []byte, v any) error {
	if !plausible(text) {
		return errImplausible
	}
	return json.Unmarshal(printable(text), v)
}

// plausible reports whether text has no more objects and arrays than a genuine answer of its length. An object
// may become a structure of 800 bytes. Genuine answers have one per 100 bytes, or one per 64 bytes with
// histograms, which are requested only from ranks of this user.
func plausible(text []byte) bool {
	const few, perPart = 1000, 60
	most := few + len(text)/perPart
	return bytes.Count(text, []byte("{")) <= most && bytes.Count(text, []byte("[")) <= most
}

// printable replaces control characters, and characters that change the direction of text, in the strings of a
// JSON text. It modifies the text in place.
func printable(text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			continue
		}
		switch next := text[i+1]; {
		case next == 'u' && i+6 <= len(text):
			if r, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 32); err == nil && control(rune(r)) {
				copy(text[i:], "      ")
			}
		case bytes.IndexByte([]byte("bfnrt"), next) >= 0:
			copy(text[i:], "  ")
		}
		i++ // an escaped byte begins no escape
	}
	return bytes.Map(func(r rune) rune {
		if control(r) {
			return ' '
		}
		return r
	}, text)
}

func control(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
