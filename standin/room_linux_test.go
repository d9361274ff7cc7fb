package standin

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"unsafe"
)

// resident is how much memory of the process there is in fact, in bytes.
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

// TestRoom: a large room takes as much memory as has been written to it, none of Go's heap,
// and is used again, empty.
func TestRoom(t *testing.T) {
	const size, written = 1<<30 + 5, 8 << 20 // nothing else has a room of this size
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	taken := resident(t)
	b, free := room(size)
	for i := 0; i < written; i += 512 {
		b[i] = 1
	}
	runtime.ReadMemStats(&after)
	if grown := resident(t) - taken; len(b) != size || grown > size/2 || after.HeapAlloc > before.HeapAlloc+size/2 {
		t.Errorf("%d bytes take %d, and the heap has %d after %d", len(b), grown, after.HeapAlloc, before.HeapAlloc)
	}
	first := unsafe.SliceData(b)
	free()
	again, free := room(size)
	defer free()
	if unsafe.SliceData(again) != first || !bytes.Equal(again[:written], make([]byte, written)) {
		t.Error("it is another one, or is not empty")
	}
	if other, free := room(size); unsafe.SliceData(other) == first {
		t.Error("two have the same room")
	} else {
		free()
	}
	small, free := room(10)
	defer free()
	if len(small) != 10 {
		t.Errorf("%d bytes instead of 10", len(small))
	}
}
