package main

var (
	meeting  = test{"the tests of sockets", []string{"./internal/rendezvous"}}
	served   = test{"the tests of jobs", []string{"./internal/jobs"}}
	joined   = test{"the tests of jobs", []string{"./node", "-run", "TestJobDirectory"}}
	meetings = test{"the tests of meetings", []string{"./transport/shm", "-run", "TestMeeting|TestOtherUser"}}
	answered = test{"the tests of answers", []string{"./daemon/control", "-run",
		"TestDecodeAnswer|TestPlausible|TestWarnings|TestJobs|TestClaims"}}
)

// Rules about the sockets with which tools find ranks on a host, and ranks find each other. Some tests require root.
func init() {
	mutations = append(mutations, []mutation{
		{"sockets: nothing is sent to a process of another user than the directory's",
			"internal/rendezvous/socket_linux.go",
			"err == nil && peer.UID != d.uid {", "err == nil && false {", []test{meeting}},
		{"sockets: a link to a socket is not followed", "internal/rendezvous/socket_linux.go",
			"unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC", "unix.O_PATH|unix.O_CLOEXEC", []test{meeting}},
		{"sockets: the directory of another user is that user's", "internal/rendezvous/dir_linux.go",
			"err == nil && int(stat.Uid) != uid {", "err == nil && false {", []test{meeting}},
		{"sockets: a socket with a listener is not replaced", "internal/rendezvous/socket_linux.go",
			"\t\tcase err == nil:\n\t\t\tunix.Close(other)\n\t\t\treturn -1, &TakenError{path, peer.PID}\n",
			"\t\tcase err == nil:\n\t\t\tunix.Close(other)\n\t\t\t_ = peer\n", []test{meeting}},
		{"sockets: of two processes that replace a socket, one waits", "internal/rendezvous/dir_linux.go",
			"switch err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); {", "switch err := error(nil); {",
			[]test{meeting}},
		{"sockets: a removed directory is created again", "internal/rendezvous/socket_linux.go",
			"if !errors.Is(err, fs.ErrNotExist) {", "if true {", []test{meeting}},
		{"sockets: only sockets without a listener are removed", "internal/rendezvous/dir_linux.go",
			"d.age(name) < staleAge || !d.isStale(name, unix.SOCK_STREAM) ||", "d.age(name) < staleAge ||",
			[]test{meeting, served}},
		{"sockets: a new socket may have no listener yet", "internal/rendezvous/dir_linux.go",
			"if d.age(name) < staleAge || !d.isStale", "if !d.isStale", []test{meeting, served}},
		{"jobs: sockets of killed processes are removed", "internal/jobs/directory_linux.go",
			"\t\t\t\tif j.Sweep() {", "\t\t\t\tif false {", []test{served}},
		{"jobs: no more of an answer is read than allowed", "internal/jobs/ask_linux.go",
			"if b.remaining.Add(-int64(n)) < 0 {", "if b.remaining.Add(-int64(n)) < -1<<40 {", []test{served}},
		{"jobs: a directory is handed over to one job", "internal/jobs/jobs.go",
			"!ok || name != Name(launcher) ||", "!ok || name == \"\" ||", []test{served}},
		{"jobs: ranks without a directory from their launcher agree on one", "node/job.go",
			"\t\tif q.host == p.host && q.directory != \"\" {", "\t\tif q.addr == p.addr {", []test{joined}},
		{"shm: ranks of one user meet in environments that differ", "transport/shm/socket_dir_linux.go",
			"\t\tconn, _, err = connectElsewhere(name, m.dir.Path())\n", "", []test{meetings}},
		{"shm: no hello of another user's process is read", "transport/shm/hello_linux.go",
			"cred.Uid != uint32(os.Geteuid())", "cred.Uid != uint32(os.Geteuid()) && false", []test{meetings}},
		{"shm: a rank that ends removes its socket", "transport/shm/conn_linux.go",
			"\tc.sockets.detach()\n", "", []test{meetings}},
		{"tools: control characters in a rank's texts do not reach a terminal", "daemon/control/answer.go",
			"err == nil && isControl(rune(r)) {", "err == nil && isControl(rune(r)) && false {", []test{answered}},
		{"tools: an answer that takes much memory is not decoded", "daemon/control/answer.go",
			"\tif !isPlausible(text) {\n", "\tif false {\n", []test{answered}},
		{"tools: a job of another user is never good", "mpe/state/status.go",
			"\tif s.ForeignUser != nil {\n", "\tif false {\n", []test{answered}},
		{"tools: a job whose ranks do not answer is not good", "mpe/state/status.go",
			"\tif len(s.Silent) > 0 {\n", "\tif false {\n", []test{answered}},
		{"tools: the programs of a rank are not taken from its answer", "daemon/control/job.go",
			"\treport.Attached = nil //", "\t//", []test{answered}},
		{"tools: the other ranks of a job are numbered by the tool", "daemon/control/job.go",
			"state.Member{Rank: rank, Address: peer.Address, Kind: peer.Kind}", "peer", []test{answered}},
		{"tools: the process of a rank is the kernel's", "daemon/control/job.go",
			"\treport.PID, report.UID, report.SocketDrops = pid, job.UID, report.Drops\n", "", []test{answered}},
	}...)
}
