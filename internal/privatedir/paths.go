package privatedir

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// program is the name that this project gives to its directories in places shared with other programs.
const program = "zrlmpi"

// RuntimePaths returns the possible paths of the directory for sockets of this user's processes, in order of
// preference. A process that searches for others searches all paths, because each process may have another environment.
func RuntimePaths() []string {
	shared, home := runtimePaths(os.Geteuid())
	if home != "" {
		shared = append(shared, home)
	}
	return shared
}

// RuntimePathsOf is RuntimePaths for any user, without the places that depend on that user's environment.
func RuntimePathsOf(uid int) []string {
	shared, _ := runtimePaths(uid)
	return shared
}

// Runtime makes the directory for sockets of this user's processes at the first possible path of RuntimePaths.
func Runtime() (*Dir, error) {
	shared, home := runtimePaths(os.Geteuid())
	var errs []error
	for _, path := range shared {
		d, err := MakeIn(path)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	if home != "" {
		d, err := Make(home)
		if err == nil {
			return d, nil
		}
		errs = append(errs, err)
	}
	return nil, fmt.Errorf("no directory for sockets, set XDG_RUNTIME_DIR: %w", pathErrors(errs))
}

// pathErrors has an error for each place.
type pathErrors []error

// Error returns all errors in one line.
func (e pathErrors) Error() string {
	texts := make([]string, len(e))
	for i, err := range e {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (e pathErrors) Unwrap() []error { return e }

// runtimePaths returns paths in existing shared directories, and a path in the home directory, or "". The home
// directory serves as a fallback if another user has taken the names in the shared directories.
func runtimePaths(uid int) (shared []string, home string) {
	own := uid == os.Geteuid()
	add := func(dir, name string) {
		if path := filepath.Join(dir, name); filepath.IsAbs(dir) && !slices.Contains(shared, path) {
			shared = append(shared, path)
		}
	}
	if own {
		add(os.Getenv("XDG_RUNTIME_DIR"), program)
		service, _, _ := strings.Cut(os.Getenv("RUNTIME_DIRECTORY"), ":") // a systemd unit may have no other
		add(service, program)
	}
	add(filepath.Join("/run/user", strconv.Itoa(uid)), program)
	if uid == 0 {
		add("/run", program)
	}
	// $TMPDIR is only one of several candidates because a batch system sets it only in its jobs. /dev/shm helps in
	// containers whose root file system is read-only.
	for _, dir := range []string{"/tmp", os.TempDir(), "/dev/shm"} {
		add(dir, fmt.Sprintf("%s-%d", program, uid))
	}
	if !own {
		return shared, ""
	}
	state, err := StatePath()
	host, hostErr := os.Hostname() // hosts may share the home directory
	if err == nil && hostErr == nil {
		home = filepath.Join(state, "run-"+filepath.Base(host))
	}
	return shared, home
}

// StatePath returns the path of this user's directory for persistent state. It is in $XDG_STATE_HOME if that is an
// absolute path, and otherwise in ~/.local/state.
func StatePath() (string, error) {
	if dir := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, program), nil
	}
	home, err := os.UserHomeDir()
	if err == nil && !filepath.IsAbs(home) {
		err = fmt.Errorf("the home directory %q is not an absolute path", home)
	}
	if err != nil {
		return "", fmt.Errorf("no directory for state, set XDG_STATE_HOME: %w", err)
	}
	return filepath.Join(home, ".local", "state", program), nil
}
