// Package steps carries out a collective call step by step: every message of it is a
// send or a receive of the rank's own, posted on whatever can post them. It is for
// devices that cannot take the whole call, such as the one of a program that is
// attached to a daemon and reduces with a function of its own.
//
// Nothing goes on by itself. The steps that become possible when others are complete
// begin while the caller waits for the call, or looks at it (weak progress). Who waits
// for something else meanwhile has to look at his calls as well: see Weak.
//
// The package must never start a goroutine, look at a clock, know a wire beyond what
// mpe.PeerInfo says, or send anything of a call that is refused.
package steps
