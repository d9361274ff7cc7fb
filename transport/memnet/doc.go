// Package memnet is an in-memory network for tests: it carries the packets of any number of ranks between
// engines of one process. It fragments messages into the datagrams that UDP would carry, and is as unreliable
// as UDP if a test wants: a Hook can lose, duplicate, delay, reorder and change datagrams.
//
// It blocks only on condition variables and delays only by timers, so it can be used in a testing/synctest
// bubble, where delays take no time. It must never be used outside tests: its queues are unbounded.
package memnet
