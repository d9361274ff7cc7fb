//go:build !linux

package tcp

import (
	"errors"
	"net"

	"github.com/zrlmpi/zrlmpid/mpe"
)

// hasPoll reports whether the system supports an inbox.
const hasPoll = false

var errNoPoll = errors.New("tcp: polling for packets is not supported on this system")

// wire and inbox are never created.
type (
	wire  struct{}
	inbox struct{}
)

func (*wire) shut() {}

func newInbox(*Conn) (*inbox, error)            { return nil, errNoPoll }
func (*inbox) run(*peer, *net.TCPConn) bool     { return false }
func (*inbox) send(*link, []mpe.Packet) int     { return 0 }
func (*inbox) recv([]mpe.RxPacket) (int, error) { return 0, errNoPoll }
func (*inbox) notifyPoll()                      {}
func (*inbox) close()                           {}

// CanPoll returns false: Poll, Wakeup and Sleep are not supported on this system.
func (c *Conn) CanPoll() bool { return false }

// Poll returns an error.
func (c *Conn) Poll([]mpe.RxPacket, *mpe.Placements) (int, error) { return 0, errNoPoll }

// Wakeup returns -1.
func (c *Conn) Wakeup() int { return -1 }

// Sleep returns true.
func (c *Conn) Sleep() bool { return true }
