// Package cosim is the boundary between a rank and FPGA logic that a simulator runs: the frames
// that both exchange, and the side of the Message Passing Engine on the role's interface (Port), or,
// if the MPE is simulated as well, that of the shell on its network streams (Network). It is
// specified in docs/cosim.md; the simulator's side is in deploy/cosim.
//
// All are pure: they have no goroutine, clock or socket, and never trust the simulator. What a
// frame claims is checked before it is used, and no memory is allocated by it.
package cosim
