// Package recorder keeps the last packets and events of the pairs of a process's ranks, and the last calls of their
// programs, in memory of a fixed size, so that a failure can be examined of which no recording was made: a flight
// recorder. Of each packet it keeps the beginning. It writes recordings that package capture analyses, and finds nothing
// in them itself.
//
// Each rank writes to rings of its own, with a lock that only a reader shares. To record a packet allocates nothing, but
// for the first packet of a ring, and reads no clock: packets have the times of the engine's events.
package recorder
