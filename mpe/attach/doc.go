// Package attach is a program's end of an attached rank: a Client that has attached to a rank of a running daemon is an
// mpe.Device, as if the rank's engine were in the program. Package wire has the bytes, which docs/attach.md specifies
// for programs in other languages; the daemon's end is package daemon/attach.
package attach

import "github.com/zrlmpi/zrlmpid/mpe/attach/wire"

// AnyRank asks for the lowest rank that no program has.
const AnyRank = wire.AnyRank

var (
	// ErrBusy: another program has the rank.
	ErrBusy = wire.ErrBusy
	// ErrControlSocket: Dial was given the path of a daemon's control socket.
	ErrControlSocket = wire.ErrControlSocket
)

// RefusedError: the daemon refused the program, or disconnected it.
type RefusedError = wire.RefusedError
