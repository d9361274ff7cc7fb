package wire

import (
	"math/rand/v2"
	"runtime"
	"testing"
	"time"
)

// eventually waits until ok returns true.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// random returns pseudo-random data.
func random(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{})
	r.Read(b)
	return b
}
