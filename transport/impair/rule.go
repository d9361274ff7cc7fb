package impair

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/zrlmpi/zrlmpid/internal/bytesize"
	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Rule selects packets, and describes the faults to apply to them. Its text form is a line of words, each
// followed by its value: "from 2 to 0 packet ACK nth 3 loss 100%".
type Rule struct {
	// From and To select packets by sender and receiver.
	From, To Ends
	// Packets selects packets by type.
	Packets Kinds
	// Nth selects packets by number. In each direction, the packets that the other conditions select are
	// counted from 1.
	Nth Range
	// After is the time at which the rule takes effect. For is the duration of its effect; 0 means forever.
	After, For time.Duration

	// Loss is the share of datagrams lost. Datagrams are lost in bursts with a mean length of Burst, or independently
	// of each other if Burst is 0.
	Loss  Percent
	Burst float64
	// Duplicate is the share of datagrams delivered twice, and Reorder is the share delayed so that other
	// datagrams overtake them. Late is the delay of a reordered datagram, and the delay between a duplicate and
	// its original. If Late is 0, a duplicate is not delayed, and a reordered datagram is delayed by 2 ms.
	Duplicate, Reorder Percent
	Late               Span
	// Corrupt is the share of packets in which one random bit is inverted.
	Corrupt Percent
	// Delay delays packets. If the delay varies, datagrams may overtake each other, but a stream keeps its order.
	Delay Span
	// Rate is the maximum number of bytes per second in each direction; 0 means no limit. Queue is the maximum number
	// of bytes of datagrams queued because of Rate, beyond which datagrams are lost; 0 means DefaultQueue.
	Rate, Queue bytesize.Size
	// Partition stops all packets: datagrams are lost, and streams stall until the rule ends.
	Partition bool
	// Reset is the share of packets that reset their connection. Close is the share of packets after which the
	// connection is closed in the packet's direction.
	Reset, Close Percent
}

// DefaultQueue is the default value of Rule.Queue, in bytes.
const DefaultQueue = 256 << 10

// reorderDelay is the default value of Rule.Late for reordered datagrams.
const reorderDelay = 2 * time.Millisecond

// Medium is a set of network types.
type Medium uint8

// The media.
const (
	// Datagrams is UDP.
	Datagrams Medium = 1 << iota
	// Streams is TCP. TCP repairs losses itself, so the faults loss, duplicate and reorder do not exist for it.
	Streams
)

// String returns "udp" or "tcp".
func (m Medium) String() string {
	if m == Streams {
		return "tcp"
	}
	return "udp"
}

// Word describes a word of the language in which rules are written.
type Word struct {
	// Name is the word itself. Value names the word's value in help texts; it is "" if the word has no value.
	Name, Value string
	// Fault is set if the word is a fault or modifies one. All other words are conditions.
	Fault bool
	// Media is the set of media to which the word applies.
	Media Medium
	// Help describes the effect of the word.
	Help string

	field
}

// field reads and writes the part of a Rule that one word sets. The function get returns the value as text, or "" if it
// is not set.
type field struct {
	set func(r *Rule, text string) error
	get func(r *Rule) string
}

// fieldAt returns the field for that part of a rule to which the function at returns a pointer. The function format
// must return "" for the zero value.
func fieldAt[T any](at func(*Rule) *T, parse func(string) (T, error), format func(T) string) field {
	return field{
		set: func(r *Rule, text string) (err error) {
			*at(r), err = parse(text)
			return err
		},
		get: func(r *Rule) string { return format(*at(r)) },
	}
}

const allMedia = Datagrams | Streams

var words = []Word{
	{"from", "ranks", false, allMedia, "sent by these ranks, as in 0,2-5 or 10.0.0.7",
		fieldAt(func(r *Rule) *Ends { return &r.From }, parseEnds, Ends.String)},
	{"to", "ranks", false, allMedia, "sent to these ranks",
		fieldAt(func(r *Rule) *Ends { return &r.To }, parseEnds, Ends.String)},
	{"packet", "types", false, allMedia,
		"of these types: SEND_REQUEST, CLEAR_TO_SEND, DATA, ACK, ERROR, or PAYLOAD (no header)",
		fieldAt(func(r *Rule) *Kinds { return &r.Packets }, parseKinds, Kinds.String)},
	{"nth", "number", false, allMedia, "with this number among such packets of their direction, as in 3 or 3-7",
		fieldAt(func(r *Rule) *Range { return &r.Nth }, parseRange, Range.String)},
	{"after", "time", false, allMedia, "sent after this time, as in 10s",
		fieldAt(func(r *Rule) *time.Duration { return &r.After }, parsePositive, formatTime)},
	{"for", "time", false, allMedia, "sent within this time from then on",
		fieldAt(func(r *Rule) *time.Duration { return &r.For }, parsePositive, formatTime)},

	{"loss", "percent", true, Datagrams, "lose datagrams, as in 5%",
		fieldAt(func(r *Rule) *Percent { return &r.Loss }, parsePercent, Percent.String)},
	{"burst", "number", true, Datagrams, "lose this many in a row on average (Gilbert-Elliott)",
		fieldAt(func(r *Rule) *float64 { return &r.Burst }, parseBurst, formatNumber)},
	{"duplicate", "percent", true, Datagrams, "deliver datagrams twice",
		fieldAt(func(r *Rule) *Percent { return &r.Duplicate }, parsePercent, Percent.String)},
	{"reorder", "percent", true, Datagrams, "delay single datagrams, so that others overtake them",
		fieldAt(func(r *Rule) *Percent { return &r.Reorder }, parsePercent, Percent.String)},
	{"late", "time", true, Datagrams, "by how much duplicates (default: at once) and reordered datagrams (default: " +
		"2ms) are late, as in 5ms or 1ms~5ms",
		fieldAt(func(r *Rule) *Span { return &r.Late }, parseSpan, Span.String)},
	{"corrupt", "percent", true, allMedia, "invert a random bit of packets",
		fieldAt(func(r *Rule) *Percent { return &r.Corrupt }, parsePercent, Percent.String)},
	{"delay", "time", true, allMedia, "delay packets, as in 5ms or 1ms~5ms",
		fieldAt(func(r *Rule) *Span { return &r.Delay }, parseSpan, Span.String)},
	{"rate", "bytes", true, allMedia, "limit each direction to this many bytes a second, as in 10MiB",
		fieldAt(func(r *Rule) *bytesize.Size { return &r.Rate }, parseSize, formatSize)},
	{"queue", "bytes", true, Datagrams, "bytes that may queue for the rate; more are lost (default: 256KiB)",
		fieldAt(func(r *Rule) *bytesize.Size { return &r.Queue }, parseSize, formatSize)},
	{"partition", "", true, allMedia, "block everything: lose datagrams, stall connections",
		field{func(r *Rule, _ string) error { r.Partition = true; return nil }, func(*Rule) string { return "" }}},
	{"reset", "percent", true, Streams, "reset the connection that packets are sent on",
		fieldAt(func(r *Rule) *Percent { return &r.Reset }, parsePercent, Percent.String)},
	{"close", "percent", true, Streams, "close the direction of the connection after packets",
		fieldAt(func(r *Rule) *Percent { return &r.Close }, parsePercent, Percent.String)},
}

// Words returns all words that may occur in rules, conditions first.
func Words() []Word { return words[:len(words):len(words)] }

// ParseRule parses the text form of a rule. A value may be followed by a comma.
func ParseRule(line string) (Rule, error) {
	var rule Rule
	seen := make(map[string]bool)
	fields := strings.Fields(line)
	for len(fields) > 0 {
		name := strings.TrimSuffix(fields[0], ",")
		fields = fields[1:]
		word := findWord(name)
		switch {
		case word == nil:
			return Rule{}, fmt.Errorf("unknown word %s%s: the words are %s", strictyaml.Quote(name),
				strictyaml.SuggestName(name, wordNames()), strings.Join(wordNames(), ", "))
		case seen[name]:
			return Rule{}, fmt.Errorf("%s appears twice: remove one of them", name)
		case word.Value != "" && len(fields) == 0:
			return Rule{}, fmt.Errorf("%s has no value: it is followed by %s", name, word.Value)
		}
		seen[name] = true
		value := ""
		if word.Value != "" {
			value, fields = strings.TrimSuffix(fields[0], ","), fields[1:]
		}
		if err := word.set(&rule, value); err != nil {
			return Rule{}, fmt.Errorf("%s: %w", name, err)
		}
	}
	return rule, rule.checkWords(seen)
}

// checkWords checks that the words in a rule can be combined.
func (r *Rule) checkWords(has map[string]bool) error {
	fault := false
	for i := range words {
		fault = fault || words[i].Fault && has[words[i].Name]
	}
	switch {
	case !fault:
		return errors.New("no fault given: add one, such as loss 5%")
	case has["burst"] && !has["loss"]:
		return errors.New("burst without loss: add loss, or remove burst")
	case has["late"] && !has["duplicate"] && !has["reorder"]:
		return errors.New("late without duplicate and reorder: add one of them, or write delay")
	case has["queue"] && !has["rate"]:
		return errors.New("queue without rate: add rate, or remove queue")
	case r.Burst > 0 && r.burstStartProb() > 1:
		return fmt.Errorf("loss %v in bursts of %v is not possible: bursts would have to follow each other without a "+
			"gap, so make them longer", r.Loss, r.Burst)
	}
	return nil
}

// burstStartProb returns the probability that a burst begins after a datagram that was not lost. It is chosen so that,
// overall, the share of datagrams lost is Loss.
func (r *Rule) burstStartProb() float64 {
	if r.Loss == 100 {
		return 1
	}
	return float64(r.Loss) / (r.Burst * float64(100-r.Loss))
}

func findWord(name string) *Word {
	for i := range words {
		if words[i].Name == name {
			return &words[i]
		}
	}
	return nil
}

func wordNames() []string {
	names := make([]string, len(words))
	for i := range words {
		names[i] = words[i].Name
	}
	return names
}

// String is the inverse of ParseRule.
func (r Rule) String() string {
	var parts []string
	for i := range words {
		switch value := words[i].get(&r); {
		case value != "":
			parts = append(parts, words[i].Name, value)
		case words[i].Value == "" && r.Partition:
			parts = append(parts, words[i].Name)
		}
	}
	return strings.Join(parts, " ")
}

// MarshalText returns String.
func (r Rule) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText calls ParseRule.
func (r *Rule) UnmarshalText(text []byte) (err error) {
	*r, err = ParseRule(string(text))
	return err
}

// Check returns an error if the rule cannot be applied to medium m between ranks with the given addresses.
func (r *Rule) Check(m Medium, ranks []netip.Addr) error {
	for i := range words {
		word := &words[i]
		set := word.get(r) != "" || word.Value == "" && r.Partition
		if set && word.Media&m == 0 {
			if m == Streams {
				return fmt.Errorf("%s is not possible over tcp, which retransmits lost data: use delay, rate, "+
					"corrupt, partition, reset or close", word.Name)
			}
			return fmt.Errorf("%s is not possible over udp, which has no connections: use loss or partition", word.Name)
		}
	}
	if _, err := r.From.resolve(ranks); err != nil {
		return fmt.Errorf("from %v: %w", r.From, err)
	}
	if _, err := r.To.resolve(ranks); err != nil {
		return fmt.Errorf("to %v: %w", r.To, err)
	}
	return nil
}
