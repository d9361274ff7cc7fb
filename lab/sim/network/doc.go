// Package network predicts what collective calls take on clusters. It executes the schedules of
// mpe/coll with the engine's own coll.Progress, and has the time of what their steps do from the
// model LogGOPS: Culler and others, LogP (1993); Alexandrov and others, LogGP (1995); Hoefler,
// Schneider, Lumsdaine, LogGOPSim (2010).
//
// A message takes processor time of its sender and of its receiver, o and O a byte, an interface for
// g or G a byte, and a latency of L. A message longer than S waits for its receive. Beside it there is
// what the engine's schedules have: copies, reductions, and publications in shared buffers. Levels are
// hosts, whose ranks share cores, memory and an interface, and switches, whose hosts share an uplink.
// A core that several ranks share serves them round-robin; a result is the mean of some distributions of ranks to cores.
//
// A cycle of its clock is a picosecond. Its randomness has a fixed seed. Package predict has the parameters from
// what was measured.
package network
