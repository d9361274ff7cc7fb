// Package cosim is the boundary between a rank and FPGA logic in a simulator: the frames that both exchange,
// and the engine's side of the interface. That is the Message Passing Engine on the role's interface (Port) or,
// if the MPE is simulated as well, the shell on its network streams (Network). The boundary is specified in
// docs/cosim.md; the simulator's side is in deploy/cosim.
//
// All types are pure: they have no goroutine, clock or socket, and never trust the simulator. Contents of a
// frame are checked before use, and do not determine memory allocations.
package cosim
