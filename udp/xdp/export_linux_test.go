package xdp

import (
	"encoding/binary"
	"time"

	"github.com/zrlmpi/zrlmpid/udp"
)

// KeepTable returns a function that makes a path use its present table again, as if it had not noticed later changes.
func KeepTable(path udp.Path) (restore func()) {
	r := path.(*Path).routes
	kept := r.table.Load()
	return func() { r.table.Store(kept) }
}

// FreeFrames returns the number of frames for sending that a path or its pool has.
func FreeFrames(path udp.Path) int {
	p := path.(*Path)
	n := len(p.frames)
	for {
		list := p.sender.pool.allocate(nil, 1<<20)
		if n += len(list); len(list) == 0 {
			return n
		}
	}
}

// SendsTo returns the port to which a path now sends the datagrams to a peer, if it carries them.
func SendsTo(path udp.Path, peer int) (port int, ok bool) {
	e := &path.(*Path).routes.table.Load().peers[peer]
	return int(binary.BigEndian.Uint16(e.headers.bytes[e.headers.udp+2:])), e.reason == ""
}

// SetRefreshInterval sets the interval at which paths that are opened later read the kernel's tables and rules.
func SetRefreshInterval(d time.Duration) (restore func()) {
	before := refreshInterval
	refreshInterval = d
	return func() { refreshInterval = before }
}
