package shm

import (
	"encoding/binary"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

const (
	// pagemapEntry is the length in bytes of an entry of /proc/PID/pagemap. pagePresent is the bit of an entry for a
	// page in memory. See proc(5).
	pagemapEntry = 8
	pagePresent  = 1 << 63
	// minPageLen is the smallest page size in bytes on any system.
	minPageLen = 4096
)

// pagemap reports which pages of a process are resident. It refers to the address space at the time of opening: if the
// process executes another program, or another process reuses its PID, pagemap reports that no page is resident.
type pagemap struct {
	fd      int
	pageLen uint64 // its length in bytes
}

// openPagemap opens the pagemap of a process. The kernel permits this only to a process that could trace it
// (ptrace(2)).
func openPagemap(pid int) (*pagemap, error) {
	fd, err := unix.Open(fmt.Sprintf("/proc/%d/pagemap", pid), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("querying the memory map of process %d: %w", pid, err)
	}
	return &pagemap{fd: fd, pageLen: uint64(os.Getpagesize())}, nil
}

// resident reports whether n bytes at addr are currently resident, so that reading them does not block. n must be
// between 1 and maxSingleCopy.
func (rr *remoteReader) resident(m *pagemap, addr uint64, n int) bool {
	first, last := addr/m.pageLen, (addr+uint64(n)-1)/m.pageLen
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
