// Package memnet is an in-memory network for tests. It carries packets between any number of ranks whose engines run in
// one process. It fragments messages into the datagrams that UDP would carry, and a test can make it as unreliable as
// UDP: a Hook can lose, duplicate, delay, reorder and change datagrams.
//
// Receivers block only on condition variables and delays use only timers, so tests can run in a testing/synctest
// bubble, where delays take no time. It must never be used outside tests, because its queues are unbounded.
package memnet
