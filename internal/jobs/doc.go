// Package jobs lets tools find the ranks of jobs on this host, and ask them for their state. The process of a rank listens on a
// Unix socket in the abstract namespace, whose name has the user, the job and the rank. Such a socket ends with its process, so
// that nothing is left behind, whatever ends the process. It answers the same user and root with a document, or, at a
// second socket, with packets as they come, and reads nothing: which of two documents a tool wants, the name of its own socket says.
//
// Other systems than Linux have no such sockets: there are no jobs to be found.
//
// It must never keep a rank waiting, or believe a socket of another user.
package jobs
