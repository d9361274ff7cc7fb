package control

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
	"unicode"
)

// errImplausible is returned for an answer that would take far more memory when decoded than its text does.
var errImplausible = errors.New("not an answer of a rank: it has too many elements for its length")

// decodeAnswer decodes an answer from a rank of a job. The answer is untrusted: any user's program may have sent it.
// decodeAnswer replaces control characters in strings with spaces, because they could manipulate a terminal.
func decodeAnswer(text []byte, v any) error {
	if !isPlausible(text) {
		return errImplausible
	}
	return json.Unmarshal(replaceControls(text), v)
}

// isPlausible reports whether text contains no more objects and arrays than a genuine answer of its length could. A
// decoded object may take up to 800 bytes. Genuine answers contain at most one object per 100 bytes, or one per 64
// bytes with histograms, which are requested only from this user's ranks.
func isPlausible(text []byte) bool {
	const few, perPart = 1000, 60
	most := few + len(text)/perPart
	return bytes.Count(text, []byte("{")) <= most && bytes.Count(text, []byte("[")) <= most
}

// replaceControls replaces control characters and characters that change the direction of text with spaces, in all
// strings of a JSON text. It modifies text in place.
func replaceControls(text []byte) []byte {
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			continue
		}
		switch next := text[i+1]; {
		case next == 'u' && i+6 <= len(text):
			if r, err := strconv.ParseUint(string(text[i+2:i+6]), 16, 32); err == nil && isControl(rune(r)) {
				copy(text[i:], "      ")
			}
		case bytes.IndexByte([]byte("bfnrt"), next) >= 0:
			copy(text[i:], "  ")
		}
		i++ // the escaped byte does not start another escape
	}
	return bytes.Map(func(r rune) rune {
		if isControl(r) {
			return ' '
		}
		return r
	}, text)
}

func isControl(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) }
