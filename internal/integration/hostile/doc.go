// Package hostile attacks zrlmpid and zrlctl like another local user. It plants files, links and sockets at paths that
// a daemon, a job or a tool of root uses, before they start and while they run, and checks that no data of root is
// overwritten, read, deleted or sent.
//
// Each attack is a function listed in attacks by the file for its target: records_linux_test.go covers the files of
// daemons and jobs, clients_linux_test.go sockets on which another user listens, jobs_linux_test.go the directories and
// the answers of jobs, and web_linux_test.go HTTP. To add a kind of attack, add a file that appends to attacks in its
// init. Every attack runs in a network namespace, with fs.protected_symlinks, protected_hardlinks and protected_regular
// off, and then on.
//
// The tests need root to become another user. HOSTILE_BIN names a directory with the zrlmpid and zrlctl to attack
// instead of the ones built from this tree.
package hostile
