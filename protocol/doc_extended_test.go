package protocol_test

import (
	"encoding/hex"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// Section 14 of docs/ZRLMPI_protocol.md describes the bytes of packets correctly.

// section returns all lines of the page, with the lines outside the section replaced by empty ones. The index of a line
// is thus its number minus 1.
func section(t *testing.T, number string) []string {
	lines := specification(t)
	in := false
	for i, line := range lines {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			in = strings.HasPrefix(title, number+" ")
		}
		if !in {
			lines[i] = ""
		}
	}
	return lines
}

// checkExtendedExample checks that the codec agrees with an example of a whole packet, and returns the number of valid
// examples.
func checkExtendedExample(t *testing.T, line int, profile string, packet []byte, text string) int {
	t.Helper()
	h, payload, d := protocol.ParseExtended(packet)
	if profile != "extended" || !d.OK() {
		t.Errorf("line %d: profile %s, %v", line, profile, d.Err())
		return 0
	}
	got := h.Describe(len(payload))
	if a, ok := protocol.ParseAck(payload, nil); ok && h.Type == protocol.Ack {
		got += " " + a.String()
	}
	if got != text {
		t.Errorf("line %d: it is %s", line, got)
	}
	return 1
}

// checkFields checks the rows of a table against a packet in which every field has a different value.
func checkFields(t *testing.T, from int, b []byte, values map[string]string) {
	t.Helper()
	row := regexp.MustCompile(`^\| (\d+)(?:–(\d+|…))? \| ([a-z ]+?)(?: \(E20\))? \|`)
	next := from
	for n, line := range section(t, "14") {
		m := row.FindStringSubmatch(line)
		if m == nil || values[m[3]] == "" {
			continue
		}
		first, _ := strconv.Atoi(m[1])
		last := first
		if m[2] != "" {
			last, _ = strconv.Atoi(m[2])
		}
		if first != next || last < first || last >= len(b) {
			t.Fatalf("line %d: bytes %d to %d, but the last field ended before %d", n+1, first, last, next)
		}
		if got := hex.EncodeToString(b[first : last+1]); got != values[m[3]] {
			t.Errorf("line %d: bytes %d to %d are %s, and not the %s", n+1, first, last, got, m[3])
		}
		delete(values, m[3])
		next = last + 1
	}
	if next != len(b) || len(values) > 0 {
		t.Errorf("the fields end at %d of %d; missing: %v", next, len(b), values)
	}
}

func TestDocumentExtendedFieldOffsets(t *testing.T) {
	b := make([]byte, protocol.ExtHeaderLen)
	protocol.PutExtended(b, &protocol.ExtHeader{
		Dst: 0x07060504, Src: 0x0b0a0908, Call: protocol.Barrier, Type: protocol.Data, Flags: 0x33,
		Session: 0x2726252423222120, PeerSession: 0x2f2e2d2c2b2a2928, Number: 0x33323130, Acknowledged: 0x37363534,
		Message: 0x3b3a3938, Comm: 0x3f3e3d3c, Tag: 0x43424140, Length: 0x47464544, Offset: 0x4b4a4948,
		Clock: 0x4f4e4d4c,
	}, make([]byte, 0x0102))
	checkFields(t, 0, b, map[string]string{
		"start mark": "96969696", "destination rank": "04050607", "source rank": "08090a0b",
		"size": "5191d111", // 0x47464544 bytes in words
		"call": "04", "packet type": "03", "version": "e2", "flags": "b3", "payload": "02010000",
		"checksum": hex.EncodeToString(b[24:28]), "end mark": "96969696",
		"session": "2021222324252627", "peer session": "28292a2b2c2d2e2f", "packet number": "30313233",
		"acknowledged": "34353637",
		"message":      "38393a3b", "communicator": "3c3d3e3f", "tag": "40414243", "length": "44454647",
		"offset": "48494a4b",
		"clock":  "4c4d4e4f",
	})
	ack := protocol.AppendAck(nil,
		&protocol.AckInfo{MessageLimit: 0x03020100, EagerLimit: 0x07060504, Delay: 0x0b0a0908 * time.Microsecond})
	checkFields(t, 0, ack, map[string]string{
		"message limit": "00010203", "eager limit": "04050607",
		"microseconds since the arrival of the packet with this clock": "08090a0b",
	})
}

func TestDocumentExtendedNumbers(t *testing.T) {
	text := strings.Join(section(t, "14"), " ")
	flags := 0
	for _, m := range regexp.MustCompile(`bit (\d) ([A-Z_]+)`).FindAllStringSubmatch(text, -1) {
		flags++
		bit, _ := strconv.Atoi(m[1])
		if got := protocol.ExtFlags(1 << bit).String(); got != m[2] {
			t.Errorf("bit %d is %s, but the document says %s", bit, got, m[2])
		}
	}
	if flags != 6 {
		t.Errorf("%d flags", flags)
	}
	codes := 0
	for _, m := range regexp.MustCompile(`\| (\d) \| ([a-z ]+) \| (?:sender|receiver|either) \|`).FindAllStringSubmatch(text, -1) {
		codes++
		code, _ := strconv.Atoi(m[1])
		if got := protocol.ErrorCode(code).String(); got != m[2] || code != codes {
			t.Errorf("code %d is %q, but the document says %q", code, got, m[2])
		}
	}
	if codes != 5 || !strings.HasPrefix(protocol.ErrorCode(codes+1).String(), "code(") {
		t.Errorf("%d codes", codes)
	}
	for _, want := range []string{
		"one datagram of " + strconv.Itoa(protocol.ExtHeaderLen) + " bytes plus payload",
		"a datagram of 1416 bytes carries " + strconv.Itoa(protocol.MaxDatagram-protocol.ExtHeaderLen) + " bytes",
		"datagrams of up to " + strconv.Itoa(protocol.MaxUDPDatagram) + " bytes",
		"at most " + strconv.Itoa(protocol.MaxStreamPayload) + " bytes of payload each",
		"up to " + strconv.Itoa(protocol.MaxAckRanges) + " ranges",
		"packets received beyond *acknowledged*, " + strconv.Itoa(protocol.AckRangeLen) + " bytes each",
		"| " + strconv.Itoa(protocol.AckLen) + "–… |",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), want) {
			t.Errorf("the document does not say %q", want)
		}
	}
}
