package attach

// unsent has the payload that sends and calls lacked when they ended: the program may have begun to send it, and what
// comes of it is discarded. Any other DATA without an operation is a violation. Only the reading goroutine uses it.
type unsent struct {
	// left is the number of bytes that may come, by the operation's number.
	left map[uint64]uint64
	// overflowed is set when there were too many of them: then any DATA is discarded.
	overflowed bool
}

// maxUnsent bounds the operations in unsent: a program need not send the rest.
const maxUnsent = 1024

// add notes an operation that has ended without some bytes of its payload.
func (u *unsent) add(id, bytes uint64) {
	switch {
	case bytes == 0 || u.overflowed:
	case len(u.left) == maxUnsent:
		u.left, u.overflowed = nil, true
	default:
		if u.left == nil {
			u.left = make(map[uint64]uint64)
		}
		u.left[id] = bytes
	}
}

// remove forgets a number, which another operation has now.
func (u *unsent) remove(id uint64) { delete(u.left, id) }

// take accounts for bytes that have come, and reports false if none were to come.
func (u *unsent) take(id, bytes uint64) bool {
	left := u.left[id]
	switch {
	case u.overflowed:
	case bytes == 0 || bytes > left:
		return false
	case bytes == left:
		delete(u.left, id)
	default:
		u.left[id] = left - bytes
	}
	return true
}
