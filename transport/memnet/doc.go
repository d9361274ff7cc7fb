// Package memnet is a network in memory: it carries the packets of any number
// of ranks between engines of one process, for tests. It fragments messages into the
// datagrams that UDP would carry, and like UDP it promises nothing: a Hook
// loses, duplicates, delays, reorders and changes packets at the test's wish.
//
// It blocks on condition variables and delays by timers only, so it may be used
// inside a testing/synctest bubble, where delays cost no time. It must never be used outside tests: its queues have no bound.
package memnet
