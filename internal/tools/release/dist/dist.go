// Package dist makes the files of a release: packages, archives, the image, and the files by which they are verified.
// Except for signatures, the bytes of all files depend only on the commit, the version and the compilers.
package dist

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Options describes a release. All paths are relative to the root of the repository, the working directory.
type Options struct {
	// Version is the version that internal/tools/version.sh prints.
	Version string
	// Platforms lists the platforms of the programs: GOOS/GOARCH. Packages and the image are for Linux.
	Platforms []string
	// Into is the folder for the files. Make removes its previous contents.
	Into string
	// Snapshot permits any commit, and omits what is missing: compilers for the C library, and keys. It is not published.
	Snapshot bool
	// GPGKey names the key in gpg's keyring that signs the apt repository, or is empty.
	GPGKey string
	// MinisignKey is the file of the key that signs SHA256SUMS, or empty.
	MinisignKey string
}

// ErrNotReleasable is wrapped by errors about a commit, a changelog or a machine that does not permit a release.
var ErrNotReleasable = errors.New("cannot be released (SNAPSHOT=1 makes a snapshot)")

// Release is the state that the steps of Make share.
type Release struct {
	Options
	// Commit is the full hash of the commit, and Time its time, which all files in artifacts have.
	Commit string
	Time   time.Time
	// Changes holds the sections of CHANGELOG.md: Unreleased, and the versions, the newest first.
	Changes []Section
	// Modules holds the Go modules that any program or library is linked from.
	Modules []Module

	artifacts []artifact
}

// artifact is a file of the release that contains programs.
type artifact struct {
	// name is the file's name in the folder of the release.
	name string
	// programs holds the paths of the programs and Go libraries in the artifact.
	programs []string
}

// buildFolder is the folder for programs and generated files that go into artifacts.
const buildFolder = "bin/build"

// Make makes the files of a release and, unless it is a snapshot, publishes them.
func Make(ctx context.Context, options Options) error {
	r, err := New(ctx, options)
	if err != nil {
		return err
	}
	if !r.Snapshot {
		if err := r.checkReleasable(); err != nil {
			return err
		}
	}
	for _, folder := range []string{r.Into, buildFolder} {
		if err := errors.Join(os.RemoveAll(folder), os.MkdirAll(folder, 0o755)); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{
		r.WriteCopyright, r.makePackages, r.makeArchives, r.makeImage, r.Describe,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	if r.Snapshot {
		fmt.Printf("%s: a snapshot, not published\n", r.Into)
		return nil
	}
	return r.publish(ctx)
}

// Describe writes the files that describe all artifacts made before, and signs them.
func (r *Release) Describe(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		r.writeSBOMs, r.writeRepository, r.writeNotes, r.writeProvenance, r.writeSums, r.sign,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// New reads the commit and the changelog of the repository.
func New(ctx context.Context, options Options) (*Release, error) {
	r := &Release{Options: options}
	if !strings.HasPrefix(r.Version, "v") {
		return nil, fmt.Errorf("version %q: it does not begin with v", r.Version)
	}
	out, err := run(ctx, nil, "git", "log", "-1", "--format=%H %ct")
	if err != nil {
		return nil, err
	}
	commit, seconds, _ := strings.Cut(strings.TrimSpace(out), " ")
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("time of the commit: %w", err)
	}
	r.Commit, r.Time = commit, time.Unix(n, 0).UTC()
	text, err := os.ReadFile("CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	r.Changes, err = ParseChangelog(string(text))
	return r, err
}

// checkReleasable returns an error unless the commit can be released, and the machine can sign and publish it.
func (r *Release) checkReleasable() error {
	var problems []error
	report := func(format string, args ...any) {
		problems = append(problems, fmt.Errorf("%s %s: %w", r.Version, fmt.Sprintf(format, args...), ErrNotReleasable))
	}
	if strings.ContainsAny(r.Version, "~+") {
		report("is not the version of a tag: the commit has no tag, or files have changed")
	}
	if top := r.Changes[1]; "v"+top.Version != r.Version || top.Date == "" {
		report("is not the newest version of CHANGELOG.md, with a date")
	}
	if len(r.Changes[0].Entries) > 0 {
		report("has entries in CHANGELOG.md that are not part of its section")
	}
	if !slices.Equal(r.Platforms, Platforms) {
		report("needs all platforms: %s", strings.Join(Platforms, " "))
	}
	if r.GPGKey == "" || r.MinisignKey == "" {
		report("needs GPG_KEY and MINISIGN_KEY")
	}
	for _, program := range []string{"gpg", "minisign", "gh"} {
		if _, err := exec.LookPath(program); err != nil {
			report("needs the program %s", program)
		}
	}
	return errors.Join(problems...)
}

// FileVersion returns the version as it is in names of files: 1.2.0-rc.1.
func (r *Release) FileVersion() string { return strings.TrimPrefix(r.Version, "v") }

// PackageVersion returns the version of packages, which dpkg and rpm sort before the release that it precedes:
// 1.2.0~rc.1.
func (r *Release) PackageVersion() string { return PackageVersion(r.FileVersion()) }

// PackageVersion returns the version of packages of a semantic version.
func PackageVersion(version string) string { return strings.Replace(version, "-", "~", 1) }

// file returns the path of a file of the release.
func (r *Release) file(name string) string { return filepath.Join(r.Into, name) }

// run runs a command with additional environment variables, and returns its standard output.
func run(ctx context.Context, env []string, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, &out, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w", strings.Join(cmd.Args, " "), err)
	}
	return out.String(), nil
}
