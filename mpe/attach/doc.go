// Package attach implements the program's side of an attached rank. A Client that is attached to a rank of a
// running daemon is an mpe.Device, as if the rank's engine ran inside the program. Package wire defines the
// frames; docs/attach.md specifies them for programs in other languages. Package daemon/attach implements the
// daemon's side.
package attach

import "github.com/zrlmpi/zrlmpid/mpe/attach/wire"

// AnyRank requests the lowest rank that no other program holds.
const AnyRank = wire.AnyRank

var (
	// ErrBusy reports that another program holds the requested rank.
	ErrBusy = wire.ErrBusy
	// ErrControlSocket is returned when the path passed to Dial belongs to a daemon's control socket rather than its
	// attach socket.
	ErrControlSocket = wire.ErrControlSocket
)

// RefusedError reports that the daemon has refused or disconnected the program.
type RefusedError = wire.RefusedError
