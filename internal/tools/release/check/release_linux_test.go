package check

import (
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"

	"github.com/zrlmpi/zrlmpid/internal/tools/release/dist"
)

// hasCopyright checks that the copyright file contains each module that the linker has recorded in a program.
func hasCopyright(t *testing.T, program string) {
	t.Helper()
	newRelease(t, "1.2.3")
	text, err := os.ReadFile("bin/build/copyright")
	if err != nil {
		t.Fatal(err)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	stanzas := strings.Split(string(text), "\n\n")
	linked := map[string]string{"std": strings.TrimPrefix(info.GoVersion, "go")}
	for _, dep := range info.Deps {
		if dep.Replace == nil {
			linked[dep.Path] = dep.Version
		}
	}
	if len(linked) < 2 {
		t.Errorf("%s: only %d modules are linked: %v", program, len(linked), linked)
	}
	for path, version := range linked {
		if !slices.ContainsFunc(stanzas, func(s string) bool {
			return strings.HasPrefix(s, "Files: vendor/"+path+"/*\n") && strings.Contains(s, "\nLicense: ") &&
				strings.Contains(s+"\n", "\nComment: Version "+version+".\n")
		}) {
			t.Errorf("%s: the copyright file has no module %s %s", program, path, version)
		}
	}
}

func TestCopyright(t *testing.T) {
	for _, name := range []string{"zrlmpid", "zrlctl", "zrlbench"} {
		hasCopyright(t, filepath.Join(programs, name))
	}
}

// TestVersions checks that versions of commits before and after a release are ordered in both kinds of packages.
func TestVersions(t *testing.T) {
	needs(t, "the order of versions", "dpkg", "dpkg")
	needs(t, "the order of versions", "rpm", "rpm")
	folder := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", folder, "-c", "user.name=a", "-c", "user.email=a@example.com"},
			args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	version := func() string {
		t.Helper()
		out, err := exec.Command(from("internal/tools/version.sh"), folder).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(changelog string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, "CHANGELOG.md"), []byte(changelog), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	const candidate = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0-rc.1] - 2026-01-02\n"
	const final = "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-02-03\n\n## [1.2.0-rc.1] - 2026-01-02\n"
	var versions []string
	add := func(want string) {
		t.Helper()
		got := version()
		if want = strings.ReplaceAll(want, "COMMIT", git("rev-parse", "--short=12", "HEAD")); got != want {
			t.Errorf("version %s, want %s", got, want)
		}
		versions = append(versions, dist.PackageVersion(strings.TrimPrefix(got, "v"))+"-1")
	}
	git("init", "--quiet")
	write(candidate)
	git("add", ".")
	git("commit", "--quiet", "-m", "1")
	add("v1.2.0-rc.1~1.gCOMMIT")
	for range 9 {
		git("commit", "--quiet", "--allow-empty", "-m", "more")
	}
	add("v1.2.0-rc.1~10.gCOMMIT")
	write(candidate + "\n")
	add("v1.2.0-rc.1~10.gCOMMIT.modified")
	write(candidate)
	git("tag", "v1.2.0-rc.1")
	add("v1.2.0-rc.1")
	write(candidate + "\n")
	add("v1.2.0-rc.1+10.gCOMMIT.modified")
	git("commit", "--quiet", "-a", "-m", "11")
	add("v1.2.0-rc.1+11.gCOMMIT")
	write(final)
	git("commit", "--quiet", "-a", "-m", "12")
	add("v1.2.0~snapshot.12.gCOMMIT")
	git("tag", "v1.2.0")
	add("v1.2.0")
	git("commit", "--quiet", "--allow-empty", "-m", "13")
	add("v1.2.0+13.gCOMMIT")

	for i := range len(versions) - 1 {
		a, b := versions[i], versions[i+1]
		if err := exec.Command("dpkg", "--compare-versions", a, "lt", b).Run(); err != nil {
			t.Errorf("dpkg: %s is not less than %s: %v", a, b, err)
		}
		out, err := exec.Command("rpm", "--eval", `%{lua: print(rpm.vercmp("`+a+`", "`+b+`"))}`).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "-1" {
			t.Errorf("rpm: %s and %s: %v, %s", a, b, err, out)
		}
	}
}

// releaseKeys generates keys for one test: it returns the user ID of gpg's, and the file of minisign's.
func releaseKeys(t *testing.T) (gpg, minisign string) {
	t.Helper()
	needs(t, "the signatures of a release", "gpg", "gnupg")
	needs(t, "the signatures of a release", "minisign", "minisign")
	home, err := os.MkdirTemp("", "gpg") // the agent's socket must have a short path
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GNUPGHOME", home)
	t.Cleanup(func() {
		exec.Command("gpgconf", "--kill", "all").Run()
		os.RemoveAll(home)
	})
	gpg = "zrlmpid test <test@example.com>"
	minisign = filepath.Join(home, "minisign.key")
	for _, command := range [][]string{
		{"gpg", "--batch", "--quiet", "--passphrase", "", "--quick-generate-key", gpg, "rsa3072", "sign", "1d"},
		{"minisign", "-G", "-W", "-p", filepath.Join(home, "minisign.pub"), "-s", minisign},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%q: %v\n%s", command, err, out)
		}
	}
	return gpg, minisign
}

// TestRelease makes the files that describe a release, and checks them as users do: apt accepts the repository,
// minisign and sha256sum accept the sums; SBOM and provenance describe the packages.
func TestRelease(t *testing.T) {
	needs(t, "the apt repository", "apt-get", "apt")
	r := newRelease(t, "1.2.3")
	r.GPGKey, r.MinisignKey = releaseKeys(t)
	deb := makePackage(t, r, "deb", false)
	makePackage(t, r, "rpm", false)
	if err := r.Describe(t.Context()); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = r.Into
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
		return string(out)
	}
	run("minisign", "-V", "-p", filepath.Join(filepath.Dir(r.MinisignKey), "minisign.pub"), "-m", "SHA256SUMS")
	run("sha256sum", "--check", "--strict", "SHA256SUMS")

	t.Run("repository", func(t *testing.T) {
		needsRoot(t, "the apt repository")
		root := t.TempDir()
		for _, folder := range []string{"state/lists/partial", "cache/archives/partial", "etc"} {
			if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		source := filepath.Join(root, "etc/zrlmpid.list")
		apt := func(tool string, args ...string) (string, error) {
			text := "deb [signed-by=" + filepath.Join(r.Into, "zrlmpid-archive-keyring.asc") + "] file:" + r.Into + " ./\n"
			if err := os.WriteFile(source, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(tool, append([]string{"-o", "Dir::State=" + root + "/state", "-o", "Dir::Cache=" + root +
				"/cache", "-o", "Dir::Etc::sourcelist=" + source, "-o", "Dir::Etc::sourceparts=-", "-o",
				"APT::Sandbox::User=root", "-o", "APT::Update::Error-Mode=any"}, args...)...)
			cmd.Dir = root
			out, err := cmd.CombinedOutput()
			return string(out), err
		}
		if out, err := apt("apt-get", "update"); err != nil || strings.Contains(out, "W:") {
			t.Fatalf("%v\n%s", err, out)
		}
		if out, err := apt("apt-cache", "policy", "zrlmpid"); err != nil || !strings.Contains(out, "Candidate: 1.2.3-1") {
			t.Errorf("%v\n%s", err, out)
		}
		if out, err := apt("apt-get", "download", "zrlmpid"); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		release := filepath.Join(r.Into, "InRelease")
		text, err := os.ReadFile(release)
		if err != nil {
			t.Fatal(err)
		}
		forged := strings.Replace(string(text), "Version: 1.2.3", "Version: 1.2.4", 1)
		if err := os.WriteFile(release, []byte(forged), 0o644); err != nil {
			t.Fatal(err)
		}
		if out, err := apt("apt-get", "update"); err == nil {
			t.Errorf("apt accepts a forged repository:\n%s", out)
		}
	})

	t.Run("reproducible", func(t *testing.T) {
		again := newRelease(t, "1.2.3")
		makePackage(t, again, "deb", false)
		makePackage(t, again, "rpm", false)
		if err := again.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		files, err := os.ReadDir(again.Into)
		if err != nil || len(files) < 9 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, file := range files {
			first, err := os.ReadFile(filepath.Join(r.Into, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			second, err := os.ReadFile(filepath.Join(again.Into, file.Name()))
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(first, second) {
				t.Errorf("%s has other bytes the second time", file.Name())
			}
		}
	})

	t.Run("SBOM", func(t *testing.T) {
		file, err := os.Open(deb + ".cdx.json")
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		var bom cdx.BOM
		if err := cdx.NewBOMDecoder(file, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
			t.Fatal(err)
		}
		subject := bom.Metadata.Component
		if sum := run("sha256sum", filepath.Base(deb)); !strings.HasPrefix(sum, (*subject.Hashes)[0].Value+" ") {
			t.Errorf("the SBOM is about %+v, not %s", subject, sum)
		}
		var names []string
		for _, c := range *bom.Components {
			names = append(names, c.Name)
			if c.Licenses == nil || len(*c.Licenses) == 0 {
				t.Errorf("component %s has no license", c.Name)
			}
		}
		for _, want := range []string{"zrlmpid", "zrlctl", "zrlbench", "std", "github.com/spf13/cobra"} {
			if !slices.Contains(names, want) {
				t.Errorf("no component %s in %q", want, names)
			}
		}
	})

	t.Run("provenance", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(r.Into, "provenance.intoto.json"))
		if err != nil {
			t.Fatal(err)
		}
		var s dist.Statement
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		commit := s.Predicate.BuildDefinition.ResolvedDependencies[0].Digest["gitCommit"]
		if s.Type != "https://in-toto.io/Statement/v1" || s.PredicateType != "https://slsa.dev/provenance/v1" ||
			len(s.Subject) != 2 || s.Subject[0].Name != filepath.Base(deb) || commit != r.Commit {
			t.Errorf("%s", text)
		}
		if sum := run("sha256sum", filepath.Base(deb)); !strings.HasPrefix(sum, s.Subject[0].Digest["sha256"]+" ") {
			t.Errorf("%s\n%s", sum, text)
		}
	})
}
