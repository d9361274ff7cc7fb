// Package rendezvous manages the directories in which processes of one user on one host find each other by Unix
// sockets. The name of a socket identifies its role; the kernel identifies the listening process (SO_PEERCRED). The
// path of a socket is limited to 107 bytes; therefore sockets are named relative to a descriptor of their directory.
//
// A killed process leaves its socket behind. The next process that listens on this name replaces it, and Sweep removes
// sockets without a process after a minute.
//
// It must never connect to a process of another user than the directory's, remove a socket on which a process listens,
// or wait for a process.
package rendezvous
