// Package recorder keeps the last packets and events of the pairs of a process's ranks, and the last calls of their
// programs, in memory of a fixed size, so that a failure can be examined even if no recording was in progress: a flight
// recorder. It keeps only the beginning of each packet. It writes recordings for package capture to analyze.
//
// Each rank writes to its own rings, and shares their locks only with a reader. Recording a packet does not allocate,
// except for the first packet of a ring, and does not read a clock: packets carry the times of the engine's events.
package recorder
