package core

import (
	"testing"
	"unsafe"
)

// A program may have millions of sends that wait for receives.
func TestRestingSendIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(restingSend{}); n > 56 {
		t.Errorf("a send that waits takes %d bytes", n)
	}
	if n := unsafe.Sizeof(unexpected{}); n > 64 {
		t.Errorf("a message that waits takes %d bytes", n)
	}
}
