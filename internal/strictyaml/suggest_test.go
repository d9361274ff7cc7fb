package strictyaml

import (
	"strings"
	"testing"
)

func TestSuggestName(t *testing.T) {
	known := []string{"rank", "address", "run", "peer"}
	for _, tc := range []struct{ got, want string }{
		{"rnak", ` (did you mean "rank"?)`},
		{"addres", ` (did you mean "address"?)`},
		{"adress", ` (did you mean "address"?)`},
		{"Peer", ` (did you mean "peer"?)`},
		{"x", ""},
		{"", ""},
		{"something", ""},
		{strings.Repeat("rank", 20), ""},
	} {
		if got := SuggestName(tc.got, known); got != tc.want {
			t.Errorf("%q: %q, want %q", tc.got, got, tc.want)
		}
	}
}
