package kept

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/zrlmpi/zrlmpid/handshake"
	"github.com/zrlmpi/zrlmpid/internal/privatedir"
)

// bootID identifies the current boot of the host.
func bootID() (id [bootLen]byte, err error) {
	const path = "/proc/sys/kernel/random/boot_id"
	text, err := os.ReadFile(path)
	if err != nil {
		return id, err
	}
	b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(string(text)), "-", ""))
	if err != nil || len(b) != bootLen {
		return id, fmt.Errorf("%s has %.80q: %w", path, text, errors.ErrUnsupported)
	}
	return [bootLen]byte(b), nil
}

// clock returns the time since the host booted, which is equal in all processes.
func clock() handshake.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // cannot happen: every kernel supports it
	}
	return time.Duration(ts.Nano())
}

// create creates a file with the given content, replacing any file of that name, and maps it into memory. It allocates
// the file's blocks, so that writes to the memory do not fail when the file system is full.
func create(dir *privatedir.Dir, name string, content []byte) (mem []byte, made fs.FileInfo, err error) {
	removePartial(dir, name)
	file, err := dir.Create(name)
	if err != nil {
		return nil, nil, err
	}
	if mem, err = writeMapped(file, content); err == nil {
		made, err = file.Stat()
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Discard())
	}
	if err := file.Commit(); err != nil {
		return nil, nil, errors.Join(err, unmap(mem))
	}
	return mem, made, nil
}

func writeMapped(file *privatedir.File, content []byte) ([]byte, error) {
	if _, err := file.Write(content); err != nil {
		return nil, err
	}
	mem, err := unix.Mmap(int(file.Fd()), 0, len(content), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("mapping %s: %w", file.Name(), err)
	}
	return mem, nil
}

// removePartial removes files of processes that ended during create.
func removePartial(dir *privatedir.Dir, name string) {
	files, err := dir.Files()
	if err != nil {
		return // create reports the error
	}
	for _, f := range files {
		if of, ok := privatedir.PartialOf(f.Name()); ok && of == name {
			_ = dir.Remove(f.Name()) // the next process tries again
		}
	}
}

func unmap(mem []byte) error {
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}
