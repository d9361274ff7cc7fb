package anonmem

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// resident returns the resident memory of the process in bytes.
func resident(t *testing.T) int {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func get(t *testing.T, n int) []byte {
	t.Helper()
	b, err := Get(n)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) != n {
		t.Fatalf("%d bytes instead of %d", len(b), n)
	}
	return b
}

// TestGet checks that a large buffer occupies as much memory as was written to it, none of it on Go's heap, and that
// it is zero when it is reused.
func TestGet(t *testing.T) {
	const n, written = 1<<30 + 5, 8 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	taken := resident(t)
	b := get(t, n)
	for i := 0; i < written; i += 512 {
		b[i] = 1
	}
	runtime.ReadMemStats(&after)
	if grown := resident(t) - taken; grown > n/2 || after.HeapAlloc > before.HeapAlloc+n/2 {
		t.Errorf("%d bytes take %d, and the heap has %d after %d", len(b), grown, after.HeapAlloc, before.HeapAlloc)
	}
	first := unsafe.SliceData(b)
	Put(b[:1])
	again := get(t, n-1)
	if unsafe.SliceData(again) != first || !bytes.Equal(again[:written], make([]byte, written)) {
		t.Error("it is another one, or is not empty")
	}
	other := get(t, n)
	if unsafe.SliceData(other) == first {
		t.Error("two have the same buffer")
	}
	Put(again)
	Put(other)
	Put(get(t, 10))
	Put(get(t, 0))
}

// TestPutReturnsMemory checks that Put returns the memory to the system.
func TestPutReturnsMemory(t *testing.T) {
	const n = 256 << 20
	b := get(t, n)
	for i := 0; i < n; i += 512 {
		b[i] = 1
	}
	full := resident(t)
	Put(b)
	if left := resident(t); left > full-n/2 {
		t.Errorf("%d bytes are resident after Put, of %d before", left, full)
	}
}

// TestSize checks that a buffer exceeds the requested length by at most an eighth.
func TestSize(t *testing.T) {
	for _, n := range []int{MinMapped, MinMapped + 1, 100_000, 1<<20 - 1, 1 << 20, 1<<20 + 1, 256 << 20, 256<<20 + 1,
		1<<30 - 1} {
		if s := roundSize(n); s < n || s > n+n/sizesPerOctave || roundSize(s) != s {
			t.Errorf("%d bytes: size %d, whose size is %d", n, s, roundSize(s))
		}
	}
}
