package main

var (
	walks     = test{"the tests of paths", []string{"./internal/privatedir"}}
	spooled   = test{"the tests of the spool", []string{"./internal/spool"}}
	listening = test{"the tests of sockets", []string{"./daemon/control", "-run", "Listen"}}
	believing = test{"the tests of clients", []string{"./daemon/control", "-run",
		"NoZrlmpid|AnswerOfAnother|SilentDaemon"}}
	attaching = test{"the tests of clients",
		[]string{"./mpe/attach", "-run", "ForeignServer|ServiceOwner|SilentServer"}}
)

// Rules about other users on the same host. Some tests require root.
func init() {
	mutations = append(mutations, []mutation{
		{"files: a directory on a path belongs to root or to this user", "internal/privatedir/walk_unix.go",
			"\tcase !w.trusts(w.stat.Uid):\n", "\tcase false:\n", []test{walks}},
		{"files: no other user may write to a directory on a path", "internal/privatedir/walk_unix.go",
			"case w.stat.Mode&writable != 0 && w.stat.Mode&unix.S_ISVTX == 0 && !w.unreachable:", "case false:",
			[]test{walks}},
		{"files: a private directory is not one with the sticky bit", "internal/privatedir/walk_unix.go",
			"\tcase w.stat.Mode&writable != 0:\n", "\tcase false:\n", []test{walks}},
		{"files: a link is followed only where no other user may write", "internal/privatedir/walk_unix.go",
			"if !w.isOurs() || !w.trusts(stat.Uid) {", "if false {", []test{walks}},
		{"files: only regular files of this user are read", "internal/privatedir/walk_unix.go",
			"\tcase !info.Mode().IsRegular():\n", "\tcase false:\n", []test{walks}},
		{"files: a new file has a name that cannot be predicted", "internal/privatedir/dir.go",
			"temp := name + \".\" + rand.Text() + partialSuffix", "temp := name + partialSuffix", []test{walks}},
		{"files: a tool writes over no file of another user", "internal/privatedir/output_unix.go",
			"if int(stat.Uid) != os.Geteuid() || ", "if ", []test{walks}},
		{"files: a tool follows no link of another user", "internal/privatedir/output_unix.go",
			"unix.O_WRONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK", "unix.O_WRONLY|unix.O_NONBLOCK", []test{walks}},
		{"spool: only records are deleted", "internal/spool/spool.go",
			"return ok && s.kind.IsName(stem)", "return ok && stem != \"\"", []test{spooled}},
		{"control: no socket is made where another user can replace it", "daemon/control/listen.go",
			"err := privatedir.MakeParents(path, 0o755)", "err := privatedir.MakeParents(\"/run/x\", 0o755)", []test{listening}},
		{"clients: nothing is sent to a process of another user", "mpe/attach/owner.go",
			"if uid == 0 || uid == os.Geteuid() {", "if true {", []test{attaching}},
		{"clients: the service's user is trusted in a directory of root only", "internal/privatedir/walk_unix.go",
			"ok = len(w.components) == 2 && w.components[0] == \"run\" && w.stat.Mode&writable == 0", "ok = true",
			[]test{attaching}},
		{"clients: attaching ends", "mpe/attach/client.go",
			"ctx, cancel := context.WithTimeoutCause(ctx, limit,",
			"ctx, cancel := context.WithTimeoutCause(ctx, 1000000*limit,", []test{attaching}},
		{"clients: an answer has a version", "daemon/control/client_http.go",
			"if resp.Header.Get(VersionHeader) == \"\" {", "if false {", []test{believing}},
		{"clients: a status has a version, a process and ranks", "daemon/control/status.go",
			"case s.Version == \"\" || s.Job == \"\" && (s.PID <= 0 || size == 0):", "case false:", []test{believing}},
		{"clients: an answer to a send is of that message", "daemon/control/client.go",
			"err == nil && (message.To != req.To ||", "err == nil && false && (message.To != req.To ||", []test{believing}},
		{"clients: waiting for an answer ends", "daemon/control/client_http.go",
			"\tif w.limit == unlimited {\n", "\tif true {\n", []test{believing}},
		{"clients: writing a request ends", "daemon/control/client_http.go",
			"_ = c.SetWriteDeadline(time.Now().Add(c.stepTimeout))", "", []test{believing}},
	}...)
}
