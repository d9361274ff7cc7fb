package main

var (
	contexts = test{"its own test", []string{"./internal/ctxerr"}}
	launched = test{"the tests of jobs of processes", []string{"./internal/launch", "-timeout", "3m"}}
	runs     = test{"the tests of Run",
		[]string{"./mpi", "./mpi/job", "-run", "TestRun|TestTwoWaiters", "-timeout", "1m"}}
	polled     = test{"its own test", []string{"./internal/progress", "-run", "TestGoroutineEnds"}}
	recordings = test{"the tests of cut recordings", []string{"./capture", "-run", "TestTruncated"}}
)

// Rules about starting a program, waiting until it ends, and ending it.
func init() {
	mutations = append(mutations, []mutation{
		{"mpi: the error of a cancelled call is the context's error, whatever the cause", "internal/ctxerr/ctxerr.go",
			"errors.Is(cause, err) {", "errors.Is(cause, cause) {", []test{contexts}},
		{"mpi: one goroutine at a time waits for a request", "mpi/request.go",
			"\tif c.hasWaiter {\n\t\treturn emptyStatus, false, c.busyError()\n\t}\n", "", []test{runs}},
		{"mpi: Run does not finalize a library that the program has finalized", "mpi/job/main.go",
			"if world.Finalized() {", "if false {", []test{runs}},
		{"mpi: the signal that ends a job is its error", "mpi/job/main.go",
			"cmp.Or(ctxerr.Cause(ctx), err)", "cmp.Or(err, ctxerr.Cause(ctx))", []test{runs}},
		{"mpi: no goroutine of the poller keeps running", "internal/progress/poller_linux.go",
			"if len(w.poller.watches) == 0 {", "if false {", []test{polled}},
		{"launcher: a terminal is read only in the foreground", "internal/launch/run_unix.go",
			"io.Copy(in, foreground(r.Stdin))", "io.Copy(in, r.Stdin)", []test{launched}},
		{"launcher: input that no rank reads is left", "internal/launch/run_unix.go",
			"rank == 0 && ok && !term.IsTerminal", "rank == -1 && ok && !term.IsTerminal", []test{launched}},
		{"launcher: Ctrl-Z stops the ranks", "internal/launch/run_unix.go",
			"\tcase syscall.SIGTSTP:\n\t\tr.signalAll(s)\n", "\tcase syscall.SIGTSTP:\n", []test{launched}},
		{"launcher: children of ranks end with the job", "internal/launch/run_unix.go",
			"\tcut.Stop()\n\tr.signalAll(syscall.SIGKILL)\n", "\tcut.Stop()\n", []test{launched}},
		{"launcher: a rank that closes its connection has failed", "internal/launch/run_unix.go",
			"r.addEvent(event{rank: rank, closed: errClosed})", "", []test{launched}},
		{"launcher: a rank that does not read does not block the launcher", "internal/launch/run_unix.go",
			"!errors.Is(err, unix.EAGAIN) ||", "true ||", []test{launched}},
		{"launcher: an aborted job has not succeeded", "internal/launch/run_unix.go",
			"cmp.Or(abort.Code&0xff, 1)", "abort.Code&0xff", []test{launched}},
		{"captures: a cut block is named by its beginning", "capture/pcapng/read.go",
			"\tg.begin = g.w.offset\n\tb, err := g.w.peek(8)", "\tb, err := g.w.peek(8)", []test{recordings}},
	}...)
}
