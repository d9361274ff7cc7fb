// Command mutations measures how much the tests detect. It removes rules from the state machines, one at a time, and
// runs the search and the simulation without the rule. It prints the rules whose removal was detected, and fails if a
// removal was not. It leaves the source tree unchanged: the go command reads the changed file from an overlay.
//
//	go -C internal/tools run ./mutations               # as in make mutations
//	go -C internal/tools run ./mutations -only P9      # rules with P9 in their names
//	go -C internal/tools run ./mutations -random 100   # random changes in some packages instead
//	go -C internal/tools run ./mutations -random 100 -own   # detected by the packages' own tests alone
//	go -C internal/tools run ./mutations -random 20 -own -only diagnosis/   # changes of one package, in about a minute
//	go -C internal/tools run ./mutations -random 9 -only mpe/core/flow.go:45   # all changes of one line
package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	root := flag.String("root", "../..", "change the repository in this `folder`")
	only := flag.String("only", "", "only rules with this `text` in their names, or places such as flow.go:45")
	n := flag.Int("random", 0, "make `n` changes at random places, and see whether tests notice")
	seed := flag.Uint64("seed", 1, "chooses the places")
	own := flag.Bool("own", false, "run the tests of the changed package only, and not those of its users")
	flag.Parse()
	var err error
	if *n > 0 {
		err = random(*root, *only, *own, *n, *seed)
	} else {
		err = run(*root, *only)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
		os.Exit(1)
	}
}

func run(root, only string) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	missed, all := 0, 0
	for _, m := range mutations {
		if !strings.Contains(m.rule, only) {
			continue
		}
		all++
		start := time.Now()
		by, err := m.caught(root)
		if err != nil {
			return fmt.Errorf("%s: %w", m.rule, err)
		}
		if by == "" {
			missed++
			by = "NOT CAUGHT"
		}
		fmt.Printf("%-70s %s (%v)\n", m.rule, by, time.Since(start).Round(time.Second))
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d rules can be taken out without a test that fails", missed, all)
	}
	fmt.Printf("%d rules taken out, each caught\n", all)
	return nil
}

// apply returns the text of the file after the rule has been removed from it.
func (m *mutation) apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(m.file)))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("%s has %q %d times, not once", m.file, m.old, n)
	}
	return bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// caught returns the name of a test that fails when the rule is removed, or "" if all pass.
func (m *mutation) caught(root string) (string, error) {
	text, err := m.apply(root)
	if err != nil {
		return "", err
	}
	return noticed(root, m.file, text, m.by)
}

// noticed returns the name of a test that fails when a file is changed, or "" if all pass.
func noticed(root, name string, text []byte, by []test) (string, error) {
	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	flag, err := overlay(root, dir, map[string][]byte{name: text})
	if err != nil {
		return "", err
	}
	failing, _, err := failed(root, by, flag)
	return caughtBy(failing), err
}

// overlay writes changed files to dir. It returns an environment setting that makes the go command use them.
func overlay(root, dir string, texts map[string][]byte) (string, error) {
	replace := make(map[string]string, len(texts))
	for name, text := range texts {
		changed := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(changed, text, 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(name))] = changed
	}
	text, err := json.Marshal(map[string]map[string]string{"Replace": replace})
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, "overlay.json")
	return "GOFLAGS=" + strings.TrimSpace(os.Getenv("GOFLAGS")+" -overlay="+file), os.WriteFile(file, text, 0o600)
}

// failed returns the name of the first test that fails with the given settings, and its output, or "" if all pass. The
// settings also apply to programs built by tests.
func failed(root string, by []test, settings ...string) (name string, output []byte, err error) {
	for _, t := range by {
		args := append([]string{"test", "-vet=off", "-count=1", "-timeout=10m"}, t.args...)
		cmd := exec.Command("go", args...)
		cmd.Env = append(os.Environ(), settings...)
		cmd.Dir = root
		out, err := cmd.CombinedOutput()
		if bytes.Contains(out, []byte("[build failed]")) {
			return "", nil, fmt.Errorf("it does not compile:\n%s", out)
		}
		// A test without a -timeout flag may just be slow.
		if bytes.Contains(out, []byte("panic: test timed out")) && !slices.Contains(t.args, "-timeout") {
			return "", nil, fmt.Errorf("%s does not end", t.name)
		}
		if err != nil {
			return t.name, out, nil
		}
	}
	return "", nil, nil
}

// caughtBy returns the text for a change that the named test detects, or "" if no test does.
func caughtBy(name string) string {
	if name == "" {
		return ""
	}
	return "caught by " + name
}
