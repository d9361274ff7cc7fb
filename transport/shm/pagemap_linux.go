package shm

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// pagemapEntry is the length in bytes of what /proc/PID/pagemap says of a page, and
	// pagePresent is in there if the page is in memory. See proc(5).
	pagemapEntry = 8
	pagePresent  = 1 << 63
	// minPage is the shortest page in bytes that a system has.
	minPage = 4096
)

// pagemap says which memory of a process is there. It is about the memory that the process
// had when it was opened: there is none of it any more if another program runs in its
// place, or another process has its number.
type pagemap struct {
	fd   int
	page uint64 // its length in bytes
}

func openPagemap(pid int) (*pagemap, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/pagemap", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("asking which memory of process %d is there: %w", pid, err)
	}
	return &pagemap{fd: fd, page: uint64(os.Getpagesize())}, nil
}

// resident reports whether n bytes from addr on are there, so that to read them waits for
// nothing. The answer is true of now. n is at most maxSingleCopy, and not 0.
func (rr *remoteReader) resident(m *pagemap, addr uint64, n int) bool {
	first, last := addr/m.page, (addr+uint64(n)-1)/m.page
	pages := last - first + 1
	if last < first || pages > uint64(len(rr.entries)/pagemapEntry) {
		return false
	}
	entries := rr.entries[:pages*pagemapEntry]
	if got, err := unix.Pread(m.fd, entries, int64(first*pagemapEntry)); err != nil || got != len(entries) {
		return false
	}
	for ; len(entries) > 0; entries = entries[pagemapEntry:] {
		if binary.LittleEndian.Uint64(entries)&pagePresent == 0 {
			return false
		}
	}
	return true
}

func (m *pagemap) close() {
	if m != nil {
		unix.Close(m.fd)
	}
}
