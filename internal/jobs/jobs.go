package jobs

import (
	"cmp"
	"crypto/rand"
	"errors"
	"io"
	"path/filepath"
	"strconv"
	"strings"
)

// EnvDirectory names an environment variable with the directory of a job, which its launcher has made for the ranks on
// this host.
const EnvDirectory = "ZRLMPI_JOB_DIRECTORY"

// Job is a job that has ranks on this host.
type Job struct {
	// Name of its launcher, as the function Name returns it.
	Name string
	UID  int
	// Directory is the path of the directory in which its ranks have their sockets.
	Directory string
	// Ranks are those whose processes listen, in ascending order.
	Ranks []int
	// Near: a process of the job has the caller's network namespace, as that of the same container.
	Near bool
}

// ID is the name of the job's directory: the name of the job and a random part, by which jobs of one name differ.
func (j *Job) ID() string { return filepath.Base(j.Directory) }

// Answers are the answers of a rank to the requests of tools.
type Answers struct {
	// Report returns the state of the rank, and Metrics the same with its counters and histograms.
	Report, Metrics func() []byte
	// Others returns the answers of other ranks to this one, which may take seconds.
	Others func() []byte
	// Packets, if not nil, writes the packets that there are, and those that follow, until gone is closed or writing
	// fails.
	Packets func(to io.Writer, gone <-chan struct{})
	// Reset ends the dead end of a peer, which was restarted.
	Reset func(peer int) error
}

// The requests of tools.
const (
	report  = "report"
	metrics = "metrics"
	others  = "others"
	packets = "packets"
	reset   = "reset " // and the peer
)

// done is the answer to a request that was carried out. Another one says why not.
const done = "done"

// following begins the answer of a rank that has packets.
const following = packets + "\n"

// ErrNoPackets: the rank has no packets.
var ErrNoPackets = errors.New("the rank records no packets")

// ErrTooLong: an answer has more bytes than the caller wants.
var ErrTooLong = errors.New("the answer is too long")

const (
	// maxJob is the most bytes of the name of a job.
	maxJob = 64
	// separator is between the name of a job and the random part of its directory's name. No random part has it.
	separator = "."
)

// Name returns the name of a job as tools have it: that of its launcher, in characters that all tools take.
func Name(launcher string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '.' || r == '_' {
			return r
		}
		return '_'
	}, launcher)
	return cmp.Or(name[:min(len(name), maxJob)], "_")
}

// newID returns a name for the directory of a job, with 130 random bits.
func newID(launcher string) string { return Name(launcher) + separator + rand.Text() }

// NameOf returns the name of the job that has a directory.
func NameOf(directory string) (name string, ok bool) {
	id := filepath.Base(directory)
	i := strings.LastIndex(id, separator)
	if i <= 0 || len(id)-i-len(separator) != len(rand.Text()) || id[:i] != Name(id[:i]) {
		return "", false
	}
	return id[:i], true
}

// HandedOver returns the directory that the launcher of a job has handed over in the environment, or "": that of
// another job, whose process started this job's launcher, is none.
func HandedOver(launcher string, getenv func(string) string) string {
	dir := getenv(EnvDirectory)
	if name, ok := NameOf(dir); !ok || name != Name(launcher) || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// rankOf reads the name of a rank's socket.
func rankOf(socket string) (rank int, ok bool) {
	n, err := strconv.ParseUint(socket, 10, 31)
	return int(n), err == nil && socket == strconv.Itoa(int(n))
}

// UnsafeError: there may be jobs of this user that are not found, as another user has taken a place of their
// directories, or could replace it.
type UnsafeError struct{ Errs []error }

// Error names the places.
func (e *UnsafeError) Error() string {
	texts := make([]string, len(e.Errs))
	for i, err := range e.Errs {
		texts[i] = err.Error()
	}
	return "jobs may run that are not found: " + strings.Join(texts, "; ")
}

// Unwrap returns an error for each place.
func (e *UnsafeError) Unwrap() []error { return e.Errs }
