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

// EnvDirectory is the environment variable that holds the path of a job's directory, which the launcher creates for the
// ranks on this host.
const EnvDirectory = "ZRLMPI_JOB_DIRECTORY"

// Job describes a job that has ranks on this host.
type Job struct {
	// Name is the name of the job's launcher, as returned by the function Name.
	Name string
	UID  int
	// Directory is the path of the directory that contains the ranks' sockets.
	Directory string
	// Ranks lists the ranks whose processes listen for requests, in ascending order.
	Ranks []int
	// SameNetwork reports whether a process of the job is in the caller's network namespace, for example in the same
	// container.
	SameNetwork bool
}

// ID returns the name of the job's directory: the name of the job and a random part, which distinguishes jobs of the
// same name.
func (j *Job) ID() string { return filepath.Base(j.Directory) }

// answerHead is the first line of an answer. Unless Error is set, a document or a stream follows.
type answerHead struct {
	// Version is the version of the process that answers.
	Version int    `json:"version"`
	Error   string `json:"error,omitempty"`
	// Unknown reports that the process is too old to know the request.
	Unknown bool `json:"unknown,omitempty"`
}

// OlderError is returned when a process does not know a request because it runs an older version of zrlmpid.
type OlderError struct{ Kind query.Kind }

// Error names the unknown request.
func (e *OlderError) Error() string {
	return fmt.Sprintf("the process runs an older version of zrlmpid, which does not know the request %q", e.Kind)
}

// ErrNoAnswer is returned when a process has closed the connection without answering the request.
var ErrNoAnswer = errors.New("the process has answered nothing: it has exited, or runs an older version of zrlmpid")

// ErrTooLong is returned when an answer is longer than the caller's limit.
var ErrTooLong = errors.New("the answer is too long")

const (
	// maxJob is the maximum length, in bytes, that a job's name may have.
	maxJob = 64
	// separator separates the name of a job from the random part of its directory's name. It does not occur in the
	// random part.
	separator = "."
)

// Name returns the name that tools use for a job: the name of its launcher, in which it replaces all characters except
// letters, digits, "-", "." and "_".
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

// NameOf returns the name of the job to which a directory belongs.
func NameOf(directory string) (name string, ok bool) {
	id := filepath.Base(directory)
	i := strings.LastIndex(id, separator)
	if i <= 0 || len(id)-i-len(separator) != len(rand.Text()) || id[:i] != Name(id[:i]) {
		return "", false
	}
	return id[:i], true
}

// InheritedDirectory returns the directory that the job's launcher passed in the environment, or "". It ignores a
// directory inherited from another job, one of whose processes started this job's launcher.
func InheritedDirectory(launcher string, getenv func(string) string) string {
	dir := getenv(EnvDirectory)
	if name, ok := NameOf(dir); !ok || name != Name(launcher) || !filepath.IsAbs(dir) {
		return ""
	}
	return dir
}

// rankOf parses the name of a rank's socket.
func rankOf(socket string) (rank int, ok bool) {
	n, err := strconv.ParseUint(socket, 10, 31)
	return int(n), err == nil && socket == strconv.Itoa(int(n))
}

// UnsafeError reports that jobs of this user may exist in directories that were not searched, because another user has
// taken or could replace them.
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
