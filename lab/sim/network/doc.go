// Package network predicts the duration of collective calls on clusters. It executes the schedules of mpe/coll with the
// engine's coll.Progress, and takes the time of each step from the LogGOPS model: Culler and others, LogP (1993);
// Alexandrov and others, LogGP (1995); Hoefler, Schneider, Lumsdaine, LogGOPSim (2010).
//
// A message costs processor time at the sender and at the receiver (o, and O per byte), time at an interface (g, and G
// per byte), and a latency L. A message longer than S waits until its receive is posted. The model adds the other steps
// of the engine's schedules: copies, reductions, and publications in shared buffers. It has two levels. Ranks on the
// same host share cores, memory and an interface; hosts on the same switch share an uplink. A core serves the ranks
// that share it in round-robin order. A result is the mean over several assignments of ranks to cores.
//
// A clock cycle is one picosecond. Random numbers come from a fixed seed. Package predict derives the parameters from
// measurements.
package network
