package dist

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// sumsFile lists the SHA-256 sums of all files of the release, and provenanceFile describes their build.
const (
	sumsFile       = "SHA256SUMS"
	provenanceFile = "provenance.intoto.json"
)

// Statement is an in-toto statement with a provenance predicate of SLSA 1.0.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Provenance `json:"predicate"`
}

// Resource is a resource descriptor of in-toto.
type Resource struct {
	Name   string            `json:"name,omitempty"`
	URI    string            `json:"uri,omitempty"`
	Digest map[string]string `json:"digest,omitempty"`
}

// Provenance describes how files were built.
type Provenance struct {
	BuildDefinition struct {
		BuildType            string         `json:"buildType"`
		ExternalParameters   map[string]any `json:"externalParameters"`
		InternalParameters   map[string]any `json:"internalParameters"`
		ResolvedDependencies []Resource     `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// writeProvenance writes the provenance of all artifacts. The builder is the releaser's machine, whose only evidence is
// the signature of SHA256SUMS: anyone can repeat the build and compare the sums.
func (r *Release) writeProvenance(ctx context.Context) error {
	s := Statement{Type: "https://in-toto.io/Statement/v1", PredicateType: "https://slsa.dev/provenance/v1"}
	for _, each := range r.artifacts {
		sum, err := sha256File(r.file(each.name))
		if err != nil {
			return err
		}
		s.Subject = append(s.Subject, Resource{Name: each.name, Digest: map[string]string{"sha256": sum}})
	}
	build := &s.Predicate.BuildDefinition
	build.BuildType = project + "/blob/main/deploy/README.md#packages"
	build.ExternalParameters = map[string]any{"source": "git+" + project, "commit": r.Commit, "version": r.Version,
		"platforms": r.Platforms, "command": "make release"}
	compilers := map[string]any{}
	for _, arch := range r.architectures() {
		if env, err := libraryEnv(arch); err == nil {
			for _, setting := range env[3:] { // CC and FC
				name, compiler, _ := strings.Cut(setting, "=")
				version, err := run(ctx, nil, compiler, "--version")
				if err != nil {
					return err
				}
				line, _, _ := strings.Cut(version, "\n")
				compilers[name+"_"+arch] = line
			}
		}
	}
	version, err := run(ctx, nil, "go", "env", "GOVERSION")
	if err != nil {
		return err
	}
	compilers["go"] = strings.TrimSpace(version)
	build.InternalParameters = compilers
	build.ResolvedDependencies = []Resource{{URI: "git+" + project + "@" + r.Commit,
		Digest: map[string]string{"gitCommit": r.Commit}}}
	s.Predicate.RunDetails.Builder.ID = project + "/blob/main/internal/tools/release"
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(r.file(provenanceFile), append(text, '\n'), 0o644)
}

// writeSums writes the sums of all files that exist in the folder of the release.
func (r *Release) writeSums(context.Context) error {
	files, err := os.ReadDir(r.Into)
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, file := range files {
		sum, err := sha256File(r.file(file.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n", sum, file.Name())
	}
	return os.WriteFile(r.file(sumsFile), []byte(sums.String()), 0o644)
}

// sign signs SHA256SUMS, which covers all other files, and Release, which covers the packages for apt. gpg and minisign
// ask for passphrases, and gpg may use a hardware token.
func (r *Release) sign(ctx context.Context) error {
	if r.MinisignKey == "" {
		fmt.Fprintln(os.Stderr, "NOT SIGNED:", sumsFile, "without MINISIGN_KEY")
	} else if _, err := run(ctx, nil, "minisign", "-S", "-s", r.MinisignKey, "-m", r.file(sumsFile), "-t",
		"zrlmpid "+r.Version); err != nil {
		return err
	}
	if r.GPGKey == "" {
		fmt.Fprintln(os.Stderr, "NOT SIGNED: the apt repository, without GPG_KEY")
		return nil
	}
	_, err := run(ctx, nil, "gpg", "--yes", "--local-user", r.GPGKey, "--digest-algo", "SHA512", "--output",
		r.file("InRelease"), "--clearsign", r.file("Release"))
	if err != nil {
		return err
	}
	_, err = run(ctx, nil, "gpg", "--yes", "--armor", "--output", r.file("zrlmpid-archive-keyring.asc"), "--export",
		r.GPGKey)
	return err
}

// publish creates the release of the tag on GitHub. Its files are also the apt repository.
func (r *Release) publish(ctx context.Context) error {
	files, err := filepath.Glob(r.file("*"))
	if err != nil {
		return err
	}
	args := []string{"release", "create", r.Version, "--repo", strings.TrimPrefix(project, "https://github.com/"),
		"--verify-tag", "--title", "zrlmpid " + r.FileVersion(), "--notes-file", r.file(notesFile)}
	if strings.Contains(r.Version, "-") {
		args = append(args, "--prerelease")
	}
	_, err = run(ctx, nil, "gh", append(args, files...)...)
	return err
}

// sha256File returns the SHA-256 sum of a file in hexadecimal.
func sha256File(file string) (string, error) {
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	_, err = io.Copy(hash, in)
	return hex.EncodeToString(hash.Sum(nil)), errors.Join(err, in.Close())
}
