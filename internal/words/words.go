// Package words formats quantities and lists for people: times, numbers of bytes, counts.
//
// It must never know the meaning of a number.
package words

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Duration formats a time in seconds in at most two units: 0.4 s, 12.3 s, 2 min 05 s, 1 h 04 min, 3 d 02 h.
func Duration(seconds float64) string {
	// Values that no clock can have produced are shown unchanged.
	if !(seconds >= 0) || seconds > math.MaxInt32 {
		return strconv.FormatFloat(seconds, 'g', 3, 64) + " s"
	}
	whole := time.Duration(seconds) * time.Second
	switch {
	case seconds < 59.95:
		return fmt.Sprintf("%.1f s", seconds)
	case seconds < 3600:
		whole = time.Duration(seconds+0.05) * time.Second
		return fmt.Sprintf("%d min %02d s", int(whole.Minutes()), int(whole.Seconds())%60)
	case seconds < 24*3600:
		return fmt.Sprintf("%d h %02d min", int(whole.Hours()), int(whole.Minutes())%60)
	}
	return fmt.Sprintf("%d d %02d h", int(whole.Hours())/24, int(whole.Hours())%24)
}

// Latency formats a time in seconds with three digits in s, ms or µs, or as a dash if it is unknown.
func Latency(seconds float64) string {
	switch {
	case !(seconds > 0):
		return "–"
	case seconds < 999.5e-6:
		return digits(seconds*1e6) + " µs"
	case seconds < 999.5e-3:
		return digits(seconds*1e3) + " ms"
	}
	return digits(seconds) + " s"
}

// Quantity formats a number with three digits, and k, M, G or T for powers of 1000.
func Quantity(x float64) string {
	for _, unit := range []string{"", " k", " M", " G"} {
		if !(math.Abs(x) >= 999.5) {
			return digits(x) + unit
		}
		x /= 1000
	}
	return digits(x) + " T"
}

// Bytes formats a number of bytes like Quantity.
func Bytes(n float64) string {
	s := Quantity(n)
	if !strings.Contains(s, " ") {
		s += " "
	}
	return s + "B"
}

// digits formats a number with three significant digits, without trailing zeros.
func digits(x float64) string {
	decimals := 0
	switch a := math.Abs(x); {
	case a < 9.995:
		decimals = 2
	case a < 99.95:
		decimals = 1
	}
	s := strconv.FormatFloat(x, 'f', decimals, 64)
	if decimals > 0 {
		s = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// Clean returns a text shortened to at most limit characters. It replaces characters that move the cursor or change the
// direction of text, because external input must not rearrange a screen.
func Clean(text string, limit int) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == unicode.ReplacementChar:
			return '\uFFFD'
		}
		return r
	}, text)
	if runes := []rune(clean); len(runes) > limit {
		clean = string(runes[:limit-1]) + "…"
	}
	return clean
}

// Plural returns "1 wait" or "2 waits".
func Plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Sentence returns a text with a capital first letter.
func Sentence(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
