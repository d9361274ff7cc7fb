// Package bytesize parses and formats sizes in bytes, such as 64KiB.
package bytesize

import (
	"fmt"
	"strconv"
	"strings"
)

// Size is a number of bytes, written "4096", "64KiB", "16MiB" or "1GiB".
type Size int64

var sizeUnits = []struct {
	suffix string
	bytes  int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}}

// UnmarshalText parses a size.
func (s *Size) UnmarshalText(text []byte) error {
	number, unit := string(text), int64(1)
	for _, u := range sizeUnits {
		if n, ok := strings.CutSuffix(number, u.suffix); ok {
			number, unit = strings.TrimSpace(n), u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil || n < 0 || n > (1<<62)/unit {
		return fmt.Errorf("%q is not a size: give bytes, or a number with KiB, MiB or GiB as in 16MiB",
			clip(string(text)))
	}
	*s = Size(n * unit)
	return nil
}

// clip shortens a text to the length at which an error message may quote it.
func clip(s string) string { return s[:min(len(s), 64)] }

// String returns the size in the largest unit of which it is a whole multiple.
func (s Size) String() string {
	for _, u := range sizeUnits[:3] {
		if s != 0 && int64(s)%u.bytes == 0 {
			return strconv.FormatInt(int64(s)/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}

// MarshalText returns String.
func (s Size) MarshalText() ([]byte, error) { return []byte(s.String()), nil }
