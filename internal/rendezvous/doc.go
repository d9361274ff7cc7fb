// Package rendezvous has the directories in which processes of one user on one host find each other by Unix sockets. A
// socket's name in its directory says who listens; the kernel says which process that is (SO_PEERCRED). The path of a
// socket has at most 107 bytes, so that sockets are named relative to a descriptor of their directory.
//
// A process that is killed leaves its socket behind. The next process that listens by its name replaces it, and Sweep
// removes those that are left for a minute.
//
// It must never connect to a process of another user than the directory's, remove a socket that a process listens on,
// or wait for a process.
package rendezvous
