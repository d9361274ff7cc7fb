package privatedir

import "golang.org/x/sys/unix"

// searchOnly is the flag for opening directories that this user may search (execute permission) but not read.
const searchOnly = unix.O_PATH
