package collective

import (
	"os"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/coll"
)

// TestDocumentOfFailures compares the protocol document's description of aborts with the code.
func TestDocumentOfFailures(t *testing.T) {
	b, err := os.ReadFile("../../docs/ZRLMPI_protocol.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(string(b)), " ")
	for says, ok := range map[string]bool{
		"In 2³² − 1, a rank reports its status":                statusComm == 1<<32-1,
		"In 2³² − 3, a root announces an order":                orderComm == 1<<32-3,
		"by a report of its status with a payload of 20 bytes": abortLen == 20,
		"keeps 64 such numbers of a communicator":              maxAborts == 64,
		"number of the call: 1 to 2²⁹ − 1, and then again":     Tags == 1<<29-1,
		"1 its deadline, 2 cancelled, 3 another call on another rank": CauseTimeout == 1 && CauseCancelled == 2 &&
			CauseMismatch == 3,
		"4 a message that was too long, 5 a rank that was lost": CauseTruncated == 4 && CausePeerLost == 5,
		"6 the rank shuts down; it has refused the call":        CauseClosing == 6,
		"7 an argument, 8 the buffer, 9 the count, 10 the datatype": CauseArgument == 7 && CauseBuffer == 8 &&
			CauseCount == 9 && CauseDatatype == 10,
		"11 the operation or 12 the root is wrong, 13 otherwise": CauseOperation == 11 && CauseRoot == 12 &&
			CauseRefused == 13,
		"13 otherwise; 0 anything else": CauseOther == 0,
		"0 nothing, 1 less than 512 bytes, 2 less than 1024, 3 more": coll.StatusOf(0) == 0 &&
			coll.StatusOf(511) == 1 && coll.StatusOf(1023) == 2 && coll.StatusOf(1024) == 3,
	} {
		if !strings.Contains(text, says) || !ok {
			t.Errorf("the document says %q: %v", says, ok)
		}
	}
}
