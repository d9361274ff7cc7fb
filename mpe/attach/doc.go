// Package attach implements the program's side of an attached rank. A Client that is attached to a rank of a running
// daemon is an mpe.Device, as if the rank's engine ran in the program. Package wire defines the frames, which
// docs/attach.md specifies for programs in other languages; package daemon/attach is the daemon's side.
package attach

import "github.com/zrlmpi/zrlmpid/mpe/attach/wire"

// AnyRank requests the lowest rank that no program holds.
const AnyRank = wire.AnyRank

var (
	// ErrBusy means that another program holds the rank.
	ErrBusy = wire.ErrBusy
	// ErrControlSocket means that Dial was given the path of a daemon's control socket.
	ErrControlSocket = wire.ErrControlSocket
)

// RefusedError reports that the daemon refused or disconnected the program.
type RefusedError = wire.RefusedError
