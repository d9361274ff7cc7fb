//go:build unix

package launch

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// backgroundTime is the interval at which a process in the background checks whether it has returned to the foreground.
const backgroundTime = 300 * time.Millisecond

// foreground returns a reader that reads from a terminal only while this process is in the foreground, because a read
// in the background would stop the job (SIGTTIN). If in is not a terminal, it returns in.
func foreground(in io.Reader) io.Reader {
	if file, ok := in.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
		return &terminal{file}
	}
	return in
}

type terminal struct{ file *os.File }

// Read waits until input is available and this process is in the foreground, and then reads.
func (t *terminal) Read(b []byte) (int, error) {
	fd := int(t.file.Fd())
	for {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil { // not the controlling terminal
			return t.file.Read(b)
		}
		if group != unix.Getpgrp() {
			_, _ = unix.Poll(nil, int(backgroundTime.Milliseconds()))
			continue
		}
		if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); err == nil {
			// Another process group may have taken the foreground while this process was waiting for input.
			if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err == nil && group == unix.Getpgrp() {
				return t.file.Read(b)
			}
		}
	}
}
