package shm

import (
	"os"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/protocol"
)

// TestDocumentNumbers checks the numbers in section 14 of docs/ZRLMPI_protocol.md.
func TestDocumentNumbers(t *testing.T) {
	b, err := os.ReadFile("../../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, ok := strings.Cut(string(b), "\n### Shared memory\n")
	if !ok {
		t.Fatal("it says nothing of shared memory")
	}
	text, _, _ = strings.Cut(text, "\n### ")
	text = strings.Join(strings.Fields(text), " ")
	packets, payload := Window(1 << 20)
	for _, x := range []struct {
		says string
		ok   bool
	}{
		{"1 MiB, or 16 MiB divided by the number of peers if that is less, but not less than 256 KiB",
			DefaultRing(2) == 1<<20 && DefaultRing(33) == 16<<20/32 && DefaultRing(1000) == 256<<10},
		{"a multiple of 64 bytes: eight bytes", recordAlign == 64 && wordLen == 8},
		{"at most 32768 bytes of payload", MaxPayload == 32768},
		{"low half first, its length and the record's position divided by 64", recordWord(128, 5) == 2<<32+5},
		{"A length of 2³² − 1 means", paddingLength == 1<<32-1},
		{"at most 3/8 of the ring's bytes are in flight, and one packet for each 2048 of them",
			payload == 3<<17 && packets == 512},
		{"address of 16 random bytes", nonceLen == 16},
		{"of at least 8192 bytes", MinSingleCopy == 8192},
		{"three numbers of eight bytes", descriptorLen == 3*8 && descriptorOff == 8+protocol.ExtHeaderLen},
		{"2³¹ added to its length", descriptorBit == 1<<31},
		{"up to 262144 bytes or a quarter of the ring if that is less",
			LongPayload(MaxRing) == 262144 && LongPayload(MinRing) == MinRing/4},
		{"position plus 1, the receiver reads the payload, together with the random bytes, directly to its " +
			"destination, and sets the state to position plus 2", stateLive == 1 && stateCopied == 2},
		{"sets it to plus 3", stateRevoked == 3},
	} {
		if !strings.Contains(text, x.says) {
			t.Errorf("section 14 does not say %q", x.says)
		} else if !x.ok {
			t.Errorf("the code does not match %q", x.says)
		}
	}
}
