package attach

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestDocumentLimits compares the limits stated in docs/attach.md with the code.
func TestDocumentLimits(t *testing.T) {
	text, err := os.ReadFile("../../docs/attach.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		fmt.Sprintf("| operations in progress, including probes | %d |", defaultOperations),
		fmt.Sprintf("and buffers of receives | %d MiB |", defaultBytes>>20),
		fmt.Sprintf("| probes that wait | %d |", maxProbes),
		fmt.Sprintf("a program may have %d of them", maxProbes),
		fmt.Sprintf("while %d of them wait", maxRefusals),
		fmt.Sprintf("HELLO has to come within %v", "5 s"),
		fmt.Sprintf("| communicators of calls, each with %d bytes, and %d for each member that was listed | %d MiB |",
			commCost, commMemberCost, maxCommBytes>>20),
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the document does not say %q", want)
		}
	}
	if helloTimeout.Seconds() != 5 {
		t.Errorf("HELLO has to come within %v", helloTimeout)
	}
}
