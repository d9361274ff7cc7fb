// Package jobs lets tools find the ranks of jobs on this host, and ask them for their state and packets, and to reset a
// peer. The ranks of a job have a directory that no other user can write to or look into, with an unpredictable name:
// its launcher makes it and hands it over, or the ranks agree on one. The process of each rank listens there on a Unix
// socket, which is named by the rank. A tool connects, sends a line with its request, and reads the answer to its end.
// The user and the process that answer are known from the kernel (SO_PEERCRED), and not from the answer.
//
// A launcher removes the directory when its job is over. Ranks that have no such launcher remove their sockets and the
// directory when they end; those of processes that were killed are removed by Sweep.
//
// Other systems than Linux have no such directories: there are no jobs to be found.
//
// It must never keep a rank waiting, read more of an answer than the caller's bound, or believe a socket of another
// user.
package jobs
