package extended

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// Section 14 of docs/ZRLMPI_protocol.md describes this package correctly.

func section(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text14, ok := strings.Cut(string(text), "\n## 14 ")
	if !ok {
		t.Fatal("there is no section 14")
	}
	text14, _, _ = strings.Cut(text14, "\n## ")
	return text14
}

// names returns the code spans in the second column of the table under a heading, in order.
func names(t *testing.T, text, heading string) (found []string) {
	t.Helper()
	_, table, ok := strings.Cut(text, heading)
	if !ok {
		t.Fatalf("there is no table %q", heading)
	}
	for line := range strings.Lines(strings.TrimLeft(table, "\n")) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			break
		}
		for _, m := range regexp.MustCompile("`(\\w+)`").FindAllStringSubmatch(cells[2], -1) {
			found = append(found, m[1])
		}
	}
	return found
}

func TestDocumentNamesStatesReasonsAndEvents(t *testing.T) {
	text := section(t)
	for heading, all := range map[string]func(i int) string{
		"| of | state | a message is in it |\n": func(i int) string {
			return enumerated(i, int(numStates),
				State(i).String)
		},
		"| rule | a packet is dropped as | for |\n": func(i int) string {
			return enumerated(i, NumReasons,
				Reason(i).String)
		},
		"| rule | event | counts |\n": func(i int) string { return enumerated(i, NumEvents, Event(i).String) },
	} {
		var want []string
		for i := 1; all(i) != ""; i++ {
			want = append(want, all(i))
		}
		got := names(t, text, heading)
		// The order of E2 is the order of the checks.
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || len(want) < 8 {
			t.Errorf("%s\n has %q\nwant %q", heading, got, want)
		}
	}
}

func enumerated(i, n int, name func() string) string {
	if i < n {
		return name()
	}
	return ""
}

// The numbers in the rules are the numbers in the code.
func TestDocumentNumbers(t *testing.T) {
	text := strings.Join(strings.Fields(section(t)), " ")
	udp, tcp := DefaultTiming(false), DefaultTiming(true)
	for _, x := range []struct {
		says string
		ok   bool
	}{
		{"`eager_limit` bytes (default 65536)", defaultEagerLimit == 65536},
		{"a datagram of 1416 bytes carries 1336 bytes", defaultPayload == 1336},
		{"It is retransmitted after 20 ms, then at doubling intervals up to 1 s, each ± 1/8",
			udp.HelloFirst == 20*time.Millisecond && udp.HelloMax == time.Second},
		{"go 2³⁰ beyond the oldest open message", maxMessages == 1<<30},
		{"one of the last four", len(session{}.endedSessions) == 4},
		{"Defaults: messages by E20a; eager bytes, 1 MiB", defaultEagerBytes == 1<<20},
		{"at least 64 and at most 65536", defaultMessages == 65536},
		{"a 64th of the initial credit but at most 64 messages", maxReserve == 64},
		{"when 16 packets, or packets with 512 KiB of payload, are unacknowledged. Otherwise it is sent 1 ms after " +
			"the first", ackEvery == 16 && ackBytes == 512<<10 && udp.AckDelay == time.Millisecond},
		{"16 at first, at most 512, and not below 4.", initialWindow == 16 && shortWindow == 512 && minWindow == 4},
		{"At most 4 MiB of payload is in flight", defaultWindowBytes == 4<<20},
		{"whose minimum round trip is 500 µs or more is *long*", longRTT == 500*time.Microsecond},
		{"for each 4 ms of the round trip, up to 32 MiB", bufferedRTT == 4*time.Millisecond && maxBytes == 32<<20},
		{"a burst may have an eighth of a window, and 16 packets", maxBurst(800) == 100},
		{"A pause of a timeout, at least 200 ms,", minIdle == 200*time.Millisecond},
		{"one sent at least 3 transmissions later", minReordering == 3},
		{"but at least 1 ms", minTimeThreshold == time.Millisecond},
		{"up to 4096, or the time, up to 32 times as long", maxReordering == 4096 && 1<<maxDoublings == 32},
		{"after three timeouts without success in a row to 4 packets", persistentTimeouts == 3},
		{"also on one in each quarter of a window of less than 64 packets", 4*ackEvery == 64},
		{"up to 512 beyond the first missing one, or up to the *length* in its ACKs, at most 16384",
			shortWindow == 512 && maxWindow == 16384},
		{"or plus 5 ms over UDP and 200 ms over TCP if that is more, at first 1 s, at most 1 s",
			udp.MinRTO == 5*time.Millisecond &&
				tcp.MinRTO == 200*time.Millisecond && udp.InitialRTO == time.Second && tcp.InitialRTO == time.Second &&
				udp.MaxRTO == time.Second},
		{"for `deadlines.ack` (default 10 s) while something should be, and three timeouts have passed",
			udp.UnreachableAfter == 10*time.Second && minStalls == 3},
		{"for 20 ms (credit) or 1 s (the others)",
			udp.HelloFirst == 20*time.Millisecond && udp.HelloMax == time.Second},
		{"After three without an answer", minStalls == 3},
		{"begin with datagrams of 1200 bytes", basePayload == 1120},
		{"1416 if it knows nothing", defaultPayload == 1336},
		{"and a third one after twice as long", maxProbes == 3},
		{"When three packets with more than 1200 bytes in a row were lost", maxProbes == 3},
		{"the size for an MTU of 1500", ethernetPayload == 1392},
		{"A report has at most 8192 bytes; a part has at most 1024, and all but the last a multiple of 8",
			MaxReport == 8192 && maxReportPart == 1024 && reportUnit == 8},
		{"no complete report after 300 ms is followed by another one, with another number, three in all; 900 ms " +
			"after the first", questionInterval == 300*time.Millisecond &&
			maxQuestions == 3 && questionTimeout == 900*time.Millisecond},
		{"answers a peer at most once in 100 ms", answerInterval == 100*time.Millisecond},
		{"When two questions were answered so", olderEchoes == 2},
		{"After 600 s", raiseAfter == 600*time.Second},
	} {
		if !strings.Contains(text, x.says) {
			t.Errorf("section 14 does not say %q", x.says)
		} else if !x.ok {
			t.Errorf("%q differs from the code", x.says)
		}
	}
}
