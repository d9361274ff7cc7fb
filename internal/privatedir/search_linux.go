package privatedir

import "golang.org/x/sys/unix"

// searchOnly opens directories that this user may search but not read.
const searchOnly = unix.O_PATH
