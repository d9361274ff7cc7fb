//go:build unix

package launch

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"github.com/zrlmpi/zrlmpid/internal/pmi"
	"github.com/zrlmpi/zrlmpid/internal/rlimit"
)

// Signals are the signals that a launcher forwards to the ranks.
var Signals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	syscall.SIGTSTP, syscall.SIGCONT,
}

// Time limits that apply while a job ends.
const (
	// endTime is the time that ranks may take to exit after a signal.
	endTime = time.Second
	// outputTime is the time that children of ranks may continue to print, and take to exit, after the last rank exits.
	outputTime = time.Second
	// closeTime limits the time between the last line that a rank sends to its launcher and the rank's exit.
	closeTime = time.Second
)

// Times at which progress is reported while the start of a job takes long.
const (
	firstProgress = 5 * time.Second
	nextProgress  = 10 * time.Second
)

// running holds the state of a job while it runs. A single goroutine runs its loop.
type running struct {
	*Job
	server *pmi.Server
	procs  []*proc
	events chan event
	// done ends the goroutines that add events.
	done    chan struct{}
	alive   int
	failure *RankError
	// cores lists the cores to which ranks are bound, or is nil if they are not bound.
	cores []int
	// outputs lists the pipes that carry the output of ranks.
	outputs []*os.File
	// interrupted is the signal that ended the job; failed is true if a rank has failed since.
	interrupted syscall.Signal
	failed      bool
	// killTimer delivers a value when the remaining processes should be killed.
	killTimer <-chan time.Time
	// reported contains the programs whose MPI library has been reported.
	reported map[*Program]bool
}

// proc is the process of a rank.
type proc struct {
	cmd      *exec.Cmd
	launcher *os.File // the launcher's end of the connection
	exited   bool
	children bool // its process group outlived it
}

// event reports that a rank sent a line to its launcher, closed its connection, or exited.
type event struct {
	rank   int
	line   string
	end    *os.ProcessState
	err    error
	closed error // reason for the end of the lines
}

// Run runs the job until all of its ranks have exited. The error is a *RankError if a rank failed or could not be
// started, a *SignalError if a signal ended the job, and otherwise an error of writing the output.
func (j *Job) Run() error {
	timer := time.NewTimer(firstProgress)
	defer timer.Stop()
	return j.run(timer.C, func() { timer.Reset(nextProgress) })
}

// run does the work of Run, with a timer that tests can replace. It reports progress each time the channel late
// delivers a value, and then calls the function again to restart the timer.
func (j *Job) run(late <-chan time.Time, again func()) error {
	r := &running{
		Job: j, server: pmi.NewServer(j.numProcesses(), cmp.Or(j.Name, fmt.Sprintf("zrlmpi_%d", os.Getpid()))),
		procs: make([]*proc, j.numProcesses()), events: make(chan event, j.numProcesses()), done: make(chan struct{}),
		reported: map[*Program]bool{},
	}
	var readers, outputs, starter sync.WaitGroup
	out, errs := &output{writer: j.Stdout}, &output{writer: j.Stderr}
	started := make(chan *RankError)
	ended := make(chan struct{})
	starter.Go(func() {
		runtime.LockOSThread() // never unlocked: the ranks are killed when their thread ends
		started <- r.startAll(out, errs, &readers, &outputs)
		<-ended
	})
	if failed := <-started; failed != nil {
		r.recordFailure(failed)
	}
	for r.alive > 0 {
		select {
		case e := <-r.events:
			r.handleEvent(e)
		case s := <-j.Signals:
			r.forwardSignal(s.(syscall.Signal))
		case <-r.killTimer:
			r.signalAll(syscall.SIGKILL)
		case <-late:
			r.reportProgress()
			again()
		}
	}
	close(r.done)
	close(ended)
	starter.Wait()
	readers.Wait()
	// Children of the ranks may continue to print after all ranks have exited.
	cut := time.AfterFunc(outputTime, func() {
		for _, f := range r.outputs {
			f.Close()
		}
	})
	outputs.Wait()
	cut.Stop()
	r.signalAll(syscall.SIGKILL)
	switch {
	case r.failure != nil:
		return r.failure
	case r.failed:
		return &SignalError{r.interrupted}
	}
	return errors.Join(out.err, errs.err)
}

// startAll starts all ranks.
func (r *running) startAll(out, errs *output, readers, outputs *sync.WaitGroup) *RankError {
	if r.Bind {
		var err error
		if r.cores, err = cores(); err != nil {
			return r.failureOf(0, CodeCannotStart, fmt.Errorf("could not be started: finding the cores: %w", err))
		}
	}
	for rank := range r.procs {
		p, err := r.start(rank, out, errs, outputs)
		if err != nil {
			return r.failureOf(rank, startCode(err), fmt.Errorf("could not be started: %w", rlimit.Descriptor(err)))
		}
		r.procs[rank] = p
		r.alive++
		readers.Go(func() { r.readLines(rank, p.launcher) })
		readers.Go(func() {
			err := p.cmd.Wait()
			if _, exit := errors.AsType[*exec.ExitError](err); exit {
				err = nil
			}
			r.addEvent(event{rank: rank, end: p.cmd.ProcessState, err: err})
		})
	}
	return nil
}

var errDirectory = errors.New("working directory")

// startCode returns the exit code that reports why a program could not be started.
func startCode(err error) int {
	if !errors.Is(err, errDirectory) && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)) {
		return CodeNotFound
	}
	return CodeCannotStart
}

// pmiFD is the number of the file descriptor by which each process is connected to the launcher.
const pmiFD = 3

// start starts the process of a rank. outputs counts the goroutines that copy its output, which end when all of its
// descendants have closed it.
func (r *running) start(rank int, out, errs *output, outputs *sync.WaitGroup) (_ *proc, err error) {
	program := r.programOf(rank)
	cmd := exec.Command(program.Args[0], program.Args[1:]...)
	if cmd.Dir = program.Dir; program.Dir != "" {
		if _, err := os.Stat(program.Dir + "/."); err != nil {
			return nil, fmt.Errorf("%w: %w", errDirectory, err)
		}
	}
	cmd.SysProcAttr = processAttributes() // signals of a terminal must reach the ranks through this process only
	cmd.Env = append(append(append(cmd.Environ(), r.Env...), program.Env...),
		fmt.Sprintf("%s=%d", pmi.EnvFD, pmiFD), fmt.Sprintf("%s=%d", pmi.EnvRank, rank),
		fmt.Sprintf("%s=%d", pmi.EnvSize, len(r.procs)),
		fmt.Sprintf("MPI_LOCALRANKID=%d", rank), fmt.Sprintf("MPI_LOCALNRANKS=%d", len(r.procs)))
	var theirs, ours []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if err != nil {
			for _, f := range ours {
				f.Close()
			}
		}
	}()
	keep := func(own, other *os.File, err error) (*os.File, error) {
		if err == nil {
			ours, theirs = append(ours, own), append(theirs, other)
		}
		return other, err
	}
	other, err := keep(socketPair())
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = []*os.File{other}
	if cmd.Stdout, err = keep(os.Pipe()); err != nil {
		return nil, err
	}
	if cmd.Stderr, err = keep(os.Pipe()); err != nil {
		return nil, err
	}
	var in *os.File
	if file, ok := r.Stdin.(*os.File); rank == 0 && ok && !term.IsTerminal(int(file.Fd())) {
		cmd.Stdin = file // the rank consumes only its own input
	} else if rank == 0 && r.Stdin != nil {
		read, write, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		cmd.Stdin, in = read, write
		ours, theirs = append(ours, write), append(theirs, read)
	}
	if r.cores != nil {
		if err := bind(r.cores[rank%len(r.cores)]); err != nil {
			return nil, fmt.Errorf("binding it to a core: %w", err)
		}
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	label := ""
	if r.Label {
		label = fmt.Sprintf("[%d] ", r.rankOf(rank))
	}
	r.outputs = append(r.outputs, ours[1:3]...)
	outputs.Go(func() { out.copy(ours[1], label); ours[1].Close() })
	outputs.Go(func() { errs.copy(ours[2], label); ours[2].Close() })
	if in != nil {
		go func() { // may block on a terminal forever
			_, _ = io.Copy(in, foreground(r.Stdin)) // a rank may not read all input
			in.Close()
		}()
	}
	return &proc{cmd: cmd, launcher: ours[0]}, nil
}

// errClosed is the failure recorded for a rank that closed its connection to the launcher but is still running.
var errClosed = errors.New("has closed its connection to the launcher without MPI_Finalize, and runs on")

// readLines reads the lines that a rank sends to its launcher, and passes each on as an event.
func (r *running) readLines(rank int, conn *os.File) {
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		r.addEvent(event{rank: rank, line: lines.Text()})
	}
	conn.Close()
	if errors.Is(lines.Err(), bufio.ErrTooLong) {
		err := fmt.Errorf("has sent its launcher a line of more than %d bytes", bufio.MaxScanTokenSize)
		r.addEvent(event{rank: rank, closed: err})
		return
	}
	select {
	case <-time.After(closeTime): // an exiting rank closes it as well
		r.addEvent(event{rank: rank, closed: errClosed})
	case <-r.done:
	}
}

// addEvent passes an event to the loop, or drops it if the job is over.
func (r *running) addEvent(e event) {
	select {
	case r.events <- e:
	case <-r.done:
	}
}

// handleEvent handles an event of a rank. Exit code 0 without MPI_Finalize is a failure as well, because other ranks
// may wait for the rank.
func (r *running) handleEvent(e event) {
	p, state := r.procs[e.rank], r.server.State(e.rank)
	switch {
	case e.closed != nil:
		if !p.exited && (state == pmi.Connected || state == pmi.Waiting || !errors.Is(e.closed, errClosed)) {
			r.recordFailure(r.failureOf(e.rank, 1, e.closed))
		}
		return
	case e.end == nil && e.err == nil:
		r.answer(e.rank, e.line)
		return
	}
	p.exited, p.children = true, syscall.Kill(-p.cmd.Process.Pid, 0) == nil
	p.launcher.Close()
	r.alive--
	switch status := e.end.Sys().(syscall.WaitStatus); {
	case e.err != nil:
		r.recordFailure(r.failureOf(e.rank, 1, e.err))
	case status.Signaled():
		err := fmt.Errorf("was ended by a signal: %v", status.Signal())
		if status.CoreDump() {
			err = fmt.Errorf("%w (core dumped)", err)
		}
		r.recordFailure(r.failureOf(e.rank, codeSignal+int(status.Signal()), err))
	case !e.end.Success():
		r.recordFailure(r.failureOf(e.rank, e.end.ExitCode(), fmt.Errorf("ended with exit code %d", e.end.ExitCode())))
	case state == pmi.Connected || state == pmi.Waiting:
		r.recordFailure(r.failureOf(e.rank, 1, errors.New("ended, with exit code 0, without MPI_Finalize")))
	case r.failIfOpenMPI(e.rank):
	default:
		r.checkBarrier()
	}
}

// answer answers a line of a rank.
func (r *running) answer(rank int, line string) {
	replies, err := r.server.Handle(rank, line, nil)
	for _, reply := range replies {
		if !r.procs[reply.Rank].sendLine(reply.Line) {
			r.recordFailure(r.failureOf(reply.Rank, 1, errors.New("does not read the answers of its launcher")))
		}
	}
	if err == nil {
		r.reportLibrary(rank)
		r.checkBarrier()
		return
	}
	if abort, is := errors.AsType[*pmi.AbortError](err); is {
		r.recordFailure(r.failureOf(rank, cmp.Or(abort.Code&0xff, 1),
			fmt.Errorf("has aborted the job with code %d", abort.Code)))
		return
	}
	r.recordFailure(r.failureOf(rank, 1, fmt.Errorf("has sent its launcher what cannot be answered: %w", err)))
}

// sendLine sends a line to the rank. It returns false if the socket's buffer is full because the rank does not read.
func (p *proc) sendLine(line string) bool {
	conn, err := p.launcher.SyscallConn()
	if err != nil {
		return true // closed: an event reports the exit
	}
	n := len(line)
	_ = conn.Write(func(fd uintptr) bool {
		n, err = unix.Write(int(fd), []byte(line))
		return true
	})
	return err != nil && !errors.Is(err, unix.EAGAIN) || n == len(line)
}

// checkBarrier fails the job if ranks wait in a barrier for a rank that will never enter it.
func (r *running) checkBarrier() {
	var waiting []int
	gone := -1
	for rank, p := range r.procs {
		switch state := r.server.State(rank); {
		case state == pmi.Waiting:
			waiting = append(waiting, rank)
		case gone < 0 && (state == pmi.Finalized || p != nil && p.exited):
			gone = rank
		}
	}
	if gone < 0 || len(waiting) == 0 {
		return
	}
	how := "has called MPI_Finalize"
	if r.server.State(gone) == pmi.Started {
		how = "ended without MPI_Init"
	}
	r.recordFailure(r.failureOf(gone, 1, fmt.Errorf("%s: %s would wait for it forever", how, r.ranksText(waiting, false))))
}

// failureOf returns the failure of a rank.
func (r *running) failureOf(rank, code int, err error) *RankError {
	return &RankError{Rank: r.rankOf(rank), process: rank, Program: r.programOf(rank).Args[0], Code: code, Err: err}
}

// recordFailure records the first failure and ends the other ranks.
func (r *running) recordFailure(rankError *RankError) {
	if r.failure != nil || r.interrupted != 0 {
		r.failed = true
		return
	}
	rankError.RanksEnded = r.alive
	if p := r.procs[rankError.process]; p != nil && !p.exited {
		rankError.RanksEnded--
	}
	r.failure = rankError
	r.terminate(syscall.SIGTERM)
}

// terminate sends a signal to all ranks, and schedules a SIGKILL for the ones that do not exit.
func (r *running) terminate(s syscall.Signal) {
	r.signalAll(s)
	if r.killTimer == nil {
		r.killTimer = time.After(endTime)
	}
}

// forwardSignal forwards a signal.
func (r *running) forwardSignal(s syscall.Signal) {
	switch s {
	case syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP:
		if r.interrupted == 0 {
			r.interrupted = s
		} else {
			s = syscall.SIGKILL
		}
		r.terminate(s)
	case syscall.SIGTSTP:
		r.signalAll(s)
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // until SIGCONT, which is forwarded
	default:
		r.signalAll(s)
	}
}

// signalAll sends a signal to the processes of all ranks and their children.
func (r *running) signalAll(s syscall.Signal) {
	for _, p := range r.procs {
		if p != nil && (!p.exited || p.children) {
			_ = syscall.Kill(-p.cmd.Process.Pid, s) // fails if the group has exited
		}
	}
}

// reportProgress reports the ranks for which the other ranks are waiting.
func (r *running) reportProgress() {
	var missing []int
	connected := false
	for rank, p := range r.procs {
		switch state := r.server.State(rank); {
		case state == pmi.Started && p != nil && !p.exited:
			if r.failIfOpenMPI(rank) {
				return
			}
			missing = append(missing, rank)
		case state == pmi.Waiting:
			connected = true
		}
	}
	if connected && len(missing) > 0 && r.Progress != nil {
		r.Progress("waiting for " + r.ranksText(missing, true) + " to call MPI_Init")
	}
}

// socketPair returns both ends of a connection.
func socketPair() (own, other *os.File, err error) {
	syscall.ForkLock.RLock() // not inherited by processes started concurrently
	defer syscall.ForkLock.RUnlock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("a connection to a rank: %w", err)
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that Close unblocks Read
		return nil, nil, err
	}
	return os.NewFile(uintptr(fds[0]), "rank"), os.NewFile(uintptr(fds[1]), "launcher"), nil
}
