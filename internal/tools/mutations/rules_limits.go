package main

var (
	unlinked = test{"the tests of limits", []string{"./transport/shm", "-run", "Refused|WithoutDescriptors"}}
	leaving  = test{"the tests of ranks that end", []string{"./extended", "-run", "TestPeerGone$|TestUnreachable$"}}
	starving = test{"the tests of descriptors",
		[]string{"./transport/tcp", "./daemon/attach", "./internal/jobs", "-run",
			"WithoutDescriptors"}}
	attachedWithLimits = test{"the tests of limits", []string{"./lib", "-run", "TestLimitedAttached"}}
	revoking           = test{"the tests of revocations", []string{"./capture", "-run", "TestRevocations"}}
	naming             = test{"the tests of limits", []string{"./internal/rlimit"}}
	asking             = test{"the tests of hostile servers",
		[]string{"./daemon/control", "-run", "HostileServer|PacketsOfOthers"}}
	answering = test{"the tests of hostile clients", []string{"./daemon/web", "-run", "Hosts|Guesses|Attempts"}}
)

// Rules about process limits, the end of ranks, HTTP, and captures.
func init() {
	mutations = append(mutations, []mutation{
		{"limits: a refusal of the peer is reported", "transport/shm/accept_linux.go",
			"\tcase refusal != nil:\n", "\tcase false:\n", []test{unlinked}},
		{"limits: a rank without descriptors returns an error to its caller", "transport/shm/accept_linux.go",
			"if err = rlimit.Descriptor(err); localLimit(err) != nil {", "if err = rlimit.Descriptor(err); false {",
			[]test{unlinked}},
		{"limits: a limit is named once", "internal/rlimit/rlimit_linux.go",
			"if Is(err) {", "if false {", []test{naming}},
		{"limits: a rank that cannot accept a peer over TCP reports it", "transport/tcp/accept.go",
			"c.refuseCaller(rlimit.Descriptor(err))", "_ = rlimit.Descriptor(err)", []test{starving}},
		{"limits: a rank that cannot dial a peer over TCP reports it", "transport/tcp/dial.go",
			"\t\t\tc.recordFailure(p, err)\n", "\t\t\tp.recordFailure(err)\n", []test{starving}},
		{"limits: a limit that does not last is not reported", "internal/rlimit/watch.go",
			"now.Sub(w.firstSeen) >= ReportAfter", "true", []test{naming}},
		{"limits: a program is notified that the daemon has no descriptor for it", "daemon/attach/server.go",
			"reserve.Spend(func() { refuseNext(sockets, err) })", "_ = sockets", []test{starving}},
		{"limits: memory that does not arrive at a program names the limit", "mpe/attach/wire/memory_linux.go",
			"flags&unix.MSG_CTRUNC != 0", "flags&unix.MSG_CTRUNC < 0", []test{starving}},
		{"limits: a rank without descriptors answers tools later", "internal/jobs/serve_linux.go",
			"case unix.EMFILE, unix.ENFILE, unix.ENOBUFS, unix.ENOMEM:", "case unix.ENOTTY:", []test{starving}},
		{"limits: a program without descriptors for Go's runtime ends with one line", "lib/addressspace.go",
			"//     check_descriptors();\n", "", []test{attachedWithLimits}},
		{"captures: a packet that revokes another one is no retransmission of it", "capture/tracker.go",
			"\tif header.Call == protocol.Barrier {\n", "\tif false {\n", []test{revoking}},
		{"captures: a revoked CLEAR_TO_SEND clears nothing", "capture/flow.go",
			" || msg != nil && msg.clearRevoked {", " {", []test{revoking}},
		{"jobs: later sends to an ended rank fail", "extended/send.go",
			"\tif c.peerGone != 0 {\n", "\tif false {\n", []test{leaving}},
		{"jobs: sends that wait for a session end with the rank", "extended/session.go",
			"\t\tc.peerGone = why\n\t\tc.sends.failMessages(&e, nil)\n", "\t\tc.peerGone, _ = why, e\n", []test{leaving}},
		{"limits: sends that wait for a session end with the path to the peer", "extended/session.go",
			"\tif why == endUnreachable {", "\tif false {", []test{leaving}},
		{"clients: the status of a server is bounded", "daemon/control/fetch_status.go",
			"\tcase len(text) > maxStatus:\n", "\tcase false:\n", []test{asking}},
		{"clients: the objects of a status are bounded", "daemon/control/fetch_status.go",
			"> maxObjects:\n", "> maxStatus:\n", []test{asking}},
		{"clients: an answer that is no recording is an error", "daemon/control/job_packets.go",
			"\t\ts.noteUnreadable(ctx, rank, err)\n\t\treturn\n\t}\n\tvar unit", "\t\treturn\n\t}\n\tvar unit", []test{asking}},
		{"http: the host of a request is the server's", "daemon/web/server.go",
			"if !s.isHostAllowed(r) {", "if false {", []test{answering}},
		{"http: passwords are checked at a bounded rate", "daemon/web/attempts.go",
			"return limit.AllowN(now, 1) && l.overall.AllowN(now, 1)", "return true", []test{answering}},
	}...)
}
