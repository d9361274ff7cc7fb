package launch

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
)

// Program describes a program that some of the job's ranks run.
type Program struct {
	Ranks int
	// Args lists the program, which is searched for in PATH, and its arguments.
	Args []string
	// Env lists environment variables (NAME=VALUE) to add to this process's environment.
	Env []string
	// Dir is the working directory; the default is the directory of this process.
	Dir string
}

// Job describes a job. Ranks are numbered in the order of the programs.
type Job struct {
	Programs []Program
	// Name identifies the job on this host; the default is derived from the process ID.
	Name string
	// ProcessRanks maps processes to ranks if the job also has ranks without a process, such as FPGAs. It is nil if
	// each rank is a process.
	ProcessRanks []ProcessRank
	// Env lists environment variables for all programs (NAME=VALUE).
	Env []string
	// Stdin is the standard input of rank 0. Other ranks have no input.
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	// Label makes each line of output begin with the rank that printed it.
	Label bool
	// Bind binds each rank to a core. The cores are assigned to the ranks in turn.
	Bind bool
	// Signals are forwarded to all ranks. An interrupt or termination signal ends the job.
	Signals <-chan os.Signal
	// Progress is called with the ranks for which the job is still waiting if the start takes long.
	Progress func(text string)
	// Verbose, if not nil, is called once for each program, with the MPI library that one of its ranks uses.
	Verbose func(text string)
}

// ProcessRank holds the rank of a process, counted among all ranks of the job, and the address of that rank.
type ProcessRank struct {
	Rank    int
	Address string
}

// rankOf returns the rank of a process among all ranks.
func (j *Job) rankOf(process int) int {
	if j.ProcessRanks == nil {
		return process
	}
	return j.ProcessRanks[process].Rank
}

// numProcesses returns the number of processes.
func (j *Job) numProcesses() (n int) {
	for _, p := range j.Programs {
		n += p.Ranks
	}
	return n
}

// programOf returns the program of a process.
func (j *Job) programOf(process int) *Program {
	for i := range j.Programs {
		if p := &j.Programs[i]; process < p.Ranks {
			return p
		} else {
			process -= p.Ranks
		}
	}
	return nil
}

// Exit codes for failures in which no rank exited with its own code. They follow the convention of shells.
const (
	CodeCannotStart = 126
	CodeNotFound    = 127
	codeSignal      = 128 // plus the signal
)

// RankError describes the first failure of a rank in a job.
type RankError struct {
	Rank    int
	process int
	Program string
	// Code is the exit code of the rank, or the job's exit code if the rank has no exit code.
	Code int
	// Err describes the failure.
	Err error
	// RanksEnded is the number of other ranks that the launcher ended because of this failure.
	RanksEnded int
}

// Error names the rank and describes the failure.
func (e *RankError) Error() string {
	text := fmt.Sprintf("rank %d (%s) %v", e.Rank, e.Program, e.Err)
	switch e.RanksEnded {
	case 0:
	case 1:
		text += "; the other rank was ended"
	default:
		text += fmt.Sprintf("; %d other ranks were ended", e.RanksEnded)
	}
	return text
}

// Unwrap returns Err.
func (e *RankError) Unwrap() error { return e.Err }

// SignalError is returned when a job ended because its launcher received a signal.
type SignalError struct{ Signal syscall.Signal }

// Error names the signal.
func (e *SignalError) Error() string {
	return fmt.Sprintf("the job was ended by a signal: %v", e.Signal)
}

// ExitCode returns the exit code with which a launcher reports the error of a job.
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

// ranksText lists the ranks of processes. If where is true, it includes their addresses, if known.
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
		fmt.Fprintf(&b, " %d", j.rankOf(p))
		if where && j.ProcessRanks != nil {
			fmt.Fprintf(&b, " (%s)", j.ProcessRanks[p].Address)
		}
	}
	return b.String()
}
