package words

import (
	"math"
	"testing"
)

func TestWords(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{Duration(0), "0.0 s"}, {Duration(12.34), "12.3 s"}, {Duration(59.94), "59.9 s"},
		{Duration(59.96), "1 min 00 s"}, {Duration(125.2), "2 min 05 s"},
		{Duration(3840), "1 h 04 min"}, {Duration(3*86400 + 7300), "3 d 02 h"}, {Duration(math.NaN()), "NaN s"},
		{Duration(-1), "-1 s"}, {Duration(1e12), "1e+12 s"},
		{Latency(0), "–"}, {Latency(12.34e-6), "12.3 µs"}, {Latency(1.5e-3), "1.5 ms"}, {Latency(2), "2 s"},
		{Latency(999.9e-6), "1 ms"}, {Latency(math.NaN()), "–"},
		{Quantity(0), "0"}, {Quantity(0.25), "0.25"}, {Quantity(999), "999"}, {Quantity(999.9), "1 k"},
		{Quantity(12345), "12.3 k"}, {Quantity(2e6), "2 M"}, {Quantity(5e14), "500 T"},
		{Bytes(12), "12 B"}, {Bytes(12e3), "12 kB"},
		{Clean("a\nb\x1b[31mc\u202e", 20), "a b\uFFFD[31mc\uFFFD"}, {Clean("abcdef", 4), "abc…"},
		{Clean("µµµ", 3), "µµµ"},
	} {
		if tt.got != tt.want {
			t.Errorf("%q, want %q", tt.got, tt.want)
		}
	}
}
