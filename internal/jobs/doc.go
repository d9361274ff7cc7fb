// Package jobs finds the ranks of jobs on this host and sends them requests of tools: for their state and packets, and
// to reset a peer. The ranks of a job share a directory that no other user can write to or look into, with an
// unpredictable name: the launcher creates it and passes it on, or the ranks agree on one. The process of each rank
// listens there on a Unix socket named by the rank. A tool connects, sends its request as a line, and reads the answer
// to its end. The kernel identifies the user and the process that answer (SO_PEERCRED); the answer does not.
//
// A launcher removes the directory at the end of its job. Ranks without such a launcher remove their sockets and the
// directory when they end. Sweep removes the sockets of killed processes.
//
// On systems other than Linux there are no such directories, and no jobs are found.
//
// It must never keep a rank waiting, read more of an answer than the caller's bound, or trust a socket of another user.
package jobs
