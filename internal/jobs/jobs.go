package jobs

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/query"
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

// head is the first line of an answer. What follows without an Error is a document, or a stream.
type head struct {
	// Version is that of the process that answers.
	Version int    `json:"version"`
	Error   string `json:"error,omitempty"`
	// Unknown: the process does not know the request, as its version is an earlier one.
	Unknown bool `json:"unknown,omitempty"`
}

// OlderError: a process does not know a request, as it runs an earlier version of zrlmpid.
type OlderError struct{ Kind query.Kind }

// Error says which request is not known.
func (e *OlderError) Error() string {
	return fmt.Sprintf("the process runs an older version of zrlmpid, which does not know the request %q", e.Kind)
}

// ErrNoAnswer: a process has ended the connection without an answer.
var ErrNoAnswer = errors.New("the process has answered nothing: it has ended, or runs an older version of zrlmpid")

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
