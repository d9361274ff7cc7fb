// Package cosim implements the boundary between a rank and FPGA logic in a simulator: the frames that the two
// sides exchange, and the engine's side of the interface. The engine's side is either the Message Passing
// Engine at the interface of the role (Port) or, if the simulation includes the MPE, the shell at the network
// streams (Network). docs/cosim.md specifies the boundary; the simulator's side is in deploy/cosim.
//
// All types are pure: they use no goroutine, clock or socket. They never trust the simulator: they check the
// contents of each frame before use, and a frame never determines how much memory is allocated.
package cosim
