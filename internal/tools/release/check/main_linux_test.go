package check

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// testTimeout limits the duration of every operation.
const testTimeout = time.Minute

// repository is the absolute path of the root of the repository.
var repository string

// programs is the folder with zrlmpid, zrlctl and zrlbench as they are in packages and in the image: without shared
// libraries.
var programs string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == filteredArg {
		fmt.Fprintln(os.Stderr, runFiltered(os.Args[2:]))
		os.Exit(111)
	}
	os.Exit(func() int {
		var err error
		if repository, err = filepath.Abs("../../../.."); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		dir, err := os.MkdirTemp("", "zrlmpid-deploy-*")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir)
		for module, packages := range map[string][]string{".": {"./cmd/zrlmpid", "./cmd/zrlctl"},
			"lab": {"./cmd/zrlbench"}} {
			cmd := exec.Command("go",
				append([]string{"build", "-trimpath", "-ldflags", "-s -w", "-o", dir + "/"}, packages...)...)
			cmd.Dir, cmd.Env, cmd.Stderr = from(module), append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
			if err := cmd.Run(); err != nil {
				fmt.Fprintf(os.Stderr, "build %v: %v\n", packages, err)
				return 1
			}
		}
		programs = dir
		return m.Run()
	}())
}

// missing skips the test because something that it requires is missing. In CI, it makes the test fail.
func missing(t *testing.T, what, why string) {
	t.Helper()
	message := "NOT TESTED: " + what + ": " + why
	if os.Getenv("CI") == "true" {
		t.Fatal(message)
	}
	t.Skip(message)
}

func needsRoot(t *testing.T, what string) {
	t.Helper()
	if os.Geteuid() != 0 {
		missing(t, what, "only root can have a separate root folder and network")
	}
}

// needs returns the path of a program. If the program is not installed, it calls missing.
func needs(t *testing.T, what, program, debian string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		missing(t, what, program+" is not installed (apt-get install "+debian+")")
	}
	return path
}

// from returns the absolute path of a file in the repository.
func from(path string) string { return filepath.Join(repository, path) }

func copyFile(t *testing.T, into, file string, mode os.FileMode) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(into), 0o755)
	}
	if err == nil {
		err = os.WriteFile(into, data, mode)
	}
	if err == nil {
		err = os.Chmod(into, mode) // regardless of the umask
	}
	if err != nil {
		t.Fatal(err)
	}
}
