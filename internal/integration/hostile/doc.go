// Package hostile attacks zrlmpid and zrlctl as another local user does: it plants files, links and sockets where a
// daemon, a job or a tool of root will look, before they start and while they run, and checks that nothing of root is
// overwritten, read, deleted or sent.
//
// Each attack is a function in attacks of a file for its target: records_linux_test.go has the files of daemons and
// jobs, clients_linux_test.go sockets on which another user listens, jobs_linux_test.go the directories and the answers
// of jobs, and web_linux_test.go HTTP. A further kind of attack is a further file, which appends to attacks in its
// init. Every attack runs in a network namespace, with fs.protected_symlinks, protected_hardlinks and protected_regular
// off, and on.
//
// Only root can be another user. HOSTILE_BIN names a directory with zrlmpid and zrlctl to be attacked in place of those
// of this tree.
package hostile
