package impair

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Percent is a probability from 0 to 100 percent, written "5%".
type Percent float64

func parsePercent(text string) (Percent, error) {
	number, ok := strings.CutSuffix(text, "%")
	x, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(x > 0 && x <= 100) {
		return 0, fmt.Errorf("%s is not a percentage: give more than 0%% and at most 100%%, as in 0.5%%",
			strictyaml.Quote(text))
	}
	return Percent(x), nil
}

// String is the inverse of parsePercent. It returns "" for 0.
func (p Percent) String() string {
	if p == 0 {
		return ""
	}
	return strconv.FormatFloat(float64(p), 'g', -1, 64) + "%"
}

// Span is a time uniformly distributed between two bounds, written "1ms~5ms", or a constant time, written "5ms".
type Span struct{ Min, Max time.Duration }

// maxTime is the maximum time in a script. It ensures that sums of times do not overflow.
const maxTime = 24 * time.Hour

func parseTime(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > maxTime {
		return 0, fmt.Errorf("%s is not a time from 0s to 24h: give a number with its unit, as in 5ms",
			strictyaml.Quote(text))
	}
	return d, nil
}

// parsePositive is like parseTime, but the time must be positive.
func parsePositive(text string) (time.Duration, error) {
	d, err := parseTime(text)
	if err == nil && d == 0 {
		err = fmt.Errorf("%s has no effect: give a longer time", strictyaml.Quote(text))
	}
	return d, err
}

// formatTime is the inverse of parsePositive. It returns "" for 0.
func formatTime(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

func parseSpan(text string) (span Span, err error) {
	low, high, varies := strings.Cut(text, "~")
	if span.Min, err = parseTime(low); err != nil {
		return span, err
	}
	if span.Max = span.Min; varies {
		if span.Max, err = parseTime(high); err != nil {
			return span, err
		}
	}
	if span.Max == 0 {
		return span, fmt.Errorf("%s has no effect: give a longer time", strictyaml.Quote(text))
	}
	if span.Max < span.Min {
		return span, fmt.Errorf("%s is in descending order: write the shorter time first", strictyaml.Quote(text))
	}
	return span, nil
}

// String is the inverse of parseSpan. It returns "" for 0s.
func (s Span) String() string {
	switch {
	case s.Max == 0:
		return ""
	case s.Min == s.Max:
		return s.Min.String()
	}
	return s.Min.String() + "~" + s.Max.String()
}

// Range is a range of integers from 1 up, both ends included, written "3" or "3-7". The zero value contains all of
// these integers.
type Range struct{ First, Last int }

func (r Range) contains(n int) bool { return r.First == 0 || n >= r.First && n <= r.Last }

func parseRange(text string) (r Range, err error) {
	first, last, ok := strings.Cut(text, "-")
	if !ok {
		last = first
	}
	var err2 error
	r.First, err = strconv.Atoi(first)
	r.Last, err2 = strconv.Atoi(last)
	if err != nil || err2 != nil || r.First < 1 || r.Last < r.First {
		return Range{}, fmt.Errorf("%s is not a number or range from 1 up: write 3, or 3-7", strictyaml.Quote(text))
	}
	return r, nil
}

// String is the inverse of parseRange. It returns "" for the zero value.
func (r Range) String() string {
	switch r.First {
	case 0:
		return ""
	case r.Last:
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// Ends selects the ranks at one end of a direction, by number, range or address. Nil selects all ranks.
type Ends []End

// End is a range of ranks or, if Addr is valid, all ranks with that IP address.
type End struct {
	First, Last int
	Addr        netip.Addr
}

// maxRank is the highest rank that a rule can name.
const maxRank = 1 << 20

func parseEnds(text string) (ends Ends, err error) {
	for item := range strings.SplitSeq(text, ",") {
		if addr, err := netip.ParseAddr(item); err == nil {
			ends = append(ends, End{Addr: addr.Unmap()})
			continue
		}
		first, last, ok := strings.Cut(item, "-")
		if !ok {
			last = first
		}
		a, errA := strconv.ParseUint(first, 10, 32)
		b, errB := strconv.ParseUint(last, 10, 32)
		if errA != nil || errB != nil || b < a || b > maxRank {
			return nil, fmt.Errorf("%s is not a rank, range of ranks or IP address: write 0, 2-5 or 10.0.0.7",
				strictyaml.Quote(item))
		}
		ends = append(ends, End{First: int(a), Last: int(b)})
	}
	return ends, nil
}

// String is the inverse of parseEnds. It returns "" for nil.
func (e Ends) String() string {
	items := make([]string, len(e))
	for i, x := range e {
		switch {
		case x.Addr.IsValid():
			items[i] = x.Addr.String()
		case x.First == x.Last:
			items[i] = strconv.Itoa(x.First)
		default:
			items[i] = fmt.Sprintf("%d-%d", x.First, x.Last)
		}
	}
	return strings.Join(items, ",")
}

// resolve returns a slice that reports, for each rank, whether e selects it, or nil if e selects all ranks. ranks holds
// the address of each rank.
func (e Ends) resolve(ranks []netip.Addr) ([]bool, error) {
	if e == nil {
		return nil, nil
	}
	in := make([]bool, len(ranks))
	for _, x := range e {
		found := false
		for rank, addr := range ranks {
			if x.Addr.IsValid() && addr == x.Addr || !x.Addr.IsValid() && rank >= x.First && rank <= x.Last {
				in[rank], found = true, true
			}
		}
		switch {
		case !found && x.Addr.IsValid():
			return nil, fmt.Errorf("no rank has the address %v", x.Addr)
		case !x.Addr.IsValid() && x.Last >= len(ranks):
			return nil, fmt.Errorf("there is no rank %d: the ranks are 0 to %d", x.Last, len(ranks)-1)
		}
	}
	return in, nil
}

func parseBurst(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || !(x >= 1 && x <= 1e6) {
		return 0, fmt.Errorf("%s is not a burst length: give a number from 1 up", strictyaml.Quote(text))
	}
	return x, nil
}

// formatNumber is the inverse of parseBurst. It returns "" for 0.
func formatNumber(x float64) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

func parseSize(text string) (s bytesize.Size, err error) {
	if err = s.UnmarshalText([]byte(text)); err == nil && (s < 1 || s > 1<<40) {
		err = fmt.Errorf("%s is not 1 byte to 1024GiB", strictyaml.Quote(text))
	}
	return s, err
}

// formatSize is the inverse of parseSize. It returns "" for 0.
func formatSize(s bytesize.Size) string {
	if s == 0 {
		return ""
	}
	return s.String()
}
