package standin

import (
	"sync"

	"golang.org/x/sys/unix"
)

// spare are rooms that have been given back, by their length. They are not unmapped:
// whoever still looked at one by mistake would end the process.
var spare = struct {
	sync.Mutex
	rooms map[int][][]byte
}{rooms: make(map[int][][]byte)}

// largeRoom is from how many bytes on a room is not of Go's heap. There it would count in
// full, and as much garbage would be left lying.
const largeRoom = 1 << 20

// room returns n bytes, which are 0, and what is to be called when they are not needed any
// more. Of many, those that nothing has been written to take no memory.
func room(n int) (b []byte, free func()) {
	if n < largeRoom {
		return make([]byte, n), func() {}
	}
	spare.Lock()
	defer spare.Unlock()
	if given := spare.rooms[n]; len(given) > 0 {
		last := len(given) - 1
		b, spare.rooms[n] = given[last], given[:last]
		return b, func() { giveBack(b) }
	}
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil { // no address space, perhaps
		return make([]byte, n), func() {}
	}
	return b, func() { giveBack(b) }
}

// giveBack has the room's memory freed, and keeps its place.
func giveBack(b []byte) {
	if unix.Madvise(b, unix.MADV_DONTNEED) != nil {
		clear(b)
	}
	spare.Lock()
	defer spare.Unlock()
	spare.rooms[len(b)] = append(spare.rooms[len(b)], b)
}
