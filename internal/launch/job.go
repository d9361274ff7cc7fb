package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Program is a program that some of the ranks run.
type Program struct {
	Ranks int
	// Args are the program, which is searched for in PATH, and its arguments.
	Args []string
	// Env are variables of its environment (NAME=VALUE) beside those of this process.
	Env []string
	// Dir is its working directory; empty: that of this process.
	Dir string
}

// Job is what to run. Ranks are numbered in the order of the programs.
type Job struct {
	Programs []Program
	// Name identifies the job on this host; empty: it has a name of its process.
	Name string
	// Places are the ranks of the processes, if others, such as FPGAs, are among them; nil: the
	// processes are all ranks.
	Places []Place
	// Env are variables of all programs (NAME=VALUE).
	Env []string
	// Stdin is what rank 0 reads; the others read nothing.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Label has each line begin with the rank that has printed it.
	Label bool
	// Bind binds the ranks to cores in turn.
	Bind bool
	// Signals are passed on to all ranks. An interrupt or a request to end ends the job.
	Signals <-chan os.Signal
	// Progress is called with what the job waits for if that takes long.
	Progress func(text string)
	// Verbose is called with the MPI library that a rank of each program uses; may be nil.
	Verbose func(text string)
}

// Place is the rank of a process among all ranks, and its address.
type Place struct {
	Rank    int
	Address string
}

// number returns the rank of a process among all ranks.
func (j *Job) number(process int) int {
	if j.Places == nil {
		return process
	}
	return j.Places[process].Rank
}

// size is the number of ranks.
func (j *Job) size() (n int) {
	for _, p := range j.Programs {
		n += p.Ranks
	}
	return n
}

// program returns the program of a process.
func (j *Job) program(process int) *Program {
	for i := range j.Programs {
		if p := &j.Programs[i]; process < p.Ranks {
			return p
		} else {
			process -= p.Ranks
		}
	}
	return nil
}

// The exit codes of failures that are not those of a rank, as shells have them.
const (
	CodeCannotStart = 126
	CodeNotFound    = 127
	codeSignal      = 128 // and the signal
)

// RankError is the failure of a rank, the first one of the job.
type RankError struct {
	Rank    int
	process int
	Program string
	// Code is its exit code, or that of the job if the rank itself has none.
	Code int
	// Err says how it has failed.
	Err error
	// Ended is how many other ranks were ended because of it.
	Ended int
}

// Error says which rank has failed, and how.
func (e *RankError) Error() string {
	text := fmt.Sprintf("rank %d (%s) %v", e.Rank, e.Program, e.Err)
	switch e.Ended {
	case 0:
	case 1:
		text += "; the other rank was ended"
	default:
		text += fmt.Sprintf("; %d other ranks were ended", e.Ended)
	}
	return text
}

// Unwrap returns how it has failed.
func (e *RankError) Unwrap() error { return e.Err }

// SignalError is a job that has ended because of a signal to the launcher.
type SignalError struct{ Signal syscall.Signal }

// Error says which signal it was.
func (e *SignalError) Error() string {
	return fmt.Sprintf("the job was ended by a signal: %v", e.Signal)
}

// ExitCode is the exit code of a launcher for the error of a job.
func ExitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, is := errors.AsType[*RankError](err); is {
		return e.Code
	}
	if e, is := errors.AsType[*SignalError](err); is {
		return codeSignal + int(e.Signal)
	}
	return 1
}

// ranksText names the ranks of processes in a sentence, and where they are if that is known.
func (j *Job) ranksText(processes []int, where bool) string {
	const most = 8
	var b strings.Builder
	if b.WriteString("rank"); len(processes) > 1 {
		b.WriteByte('s')
	}
	for i, p := range processes {
		switch {
		case i == most:
			fmt.Fprintf(&b, " and %d more", len(processes)-most)
			return b.String()
		case i > 0:
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, " %d", j.number(p))
		if where && j.Places != nil {
			fmt.Fprintf(&b, " (%s)", j.Places[p].Address)
		}
	}
	return b.String()
}
