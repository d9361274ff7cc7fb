package check

import (
	"compress/gzip"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestManual checks that no manual page has mistakes, and that all have the required contents.
func TestManual(t *testing.T) {
	groff := needs(t, "the manual pages", "groff", "groff-base")
	if err := manual(); err != nil {
		t.Fatal(err)
	}
	pages, _ := filepath.Glob(from("bin/manual/*/*.[1-8].gz"))
	want := map[string][]string{
		"zrlmpid.8.gz":       {"--check-config", "EXIT STATUS", "ZRLMPID_LOG_LEVEL", "zrlmpid.yaml(5)"},
		"zrlmpid.yaml.5.gz":  {"receive_buffer: 16MiB", "kernel_options:", "deadlines:", "zrlmpid(8)"},
		"zrlctl.1.gz":        {"zrlctl-status(1)", "--json", "no daemon answers", "List the ranks of the cluster"},
		"zrlctl-status.1.gz": {"--wait", "OFFLOAD"},
		"zrlbench.1.gz":      {"--rounds", "zrlbench-tune(1)", "zrlbench --quick"},
		"zrlmpicc.1.gz":      {"-abi=standard|mpich|upstream", "-show", "zrlmpi(7)"},
		"zrlmpi.7.gz":        {"ZRLMPI_SOCKET", "ZRLMPI_TIMEOUT", "/usr/lib/zrlmpi/lib"},
		"zrlctl-ping.1.gz":   {"--words", "zrlctl ping all --parallel"},
	}
	for _, page := range pages {
		file, err := os.Open(page)
		if err != nil {
			t.Fatal(err)
		}
		text, err := gzip.NewReader(file)
		if err != nil {
			t.Fatal(err)
		}
		var out, warnings strings.Builder
		cmd := exec.Command(groff, "-man", "-ww", "-Kutf8", "-Tutf8", "-P-c", "-rLL=200n")
		cmd.Stdin, cmd.Stdout, cmd.Stderr = text, &out, &warnings
		if err := cmd.Run(); err != nil || warnings.Len() > 0 {
			t.Errorf("%s: %v\n%s", page, err, &warnings)
		}
		file.Close()
		plain := stripOverstrikes(out.String())
		for _, words := range want[filepath.Base(page)] {
			if !strings.Contains(plain, words) {
				t.Errorf("%s has no %q\n%s", page, words, plain)
			}
		}
		delete(want, filepath.Base(page))
	}
	if len(want) > 0 {
		t.Errorf("pages are missing: %v", want)
	}
}

// stripOverstrikes removes the overstrikes that make text bold or underlined on terminals.
func stripOverstrikes(text string) string {
	var b []byte
	for i := range len(text) {
		if text[i] == '\b' && len(b) > 0 {
			b = b[:len(b)-1]
			continue
		}
		b = append(b, text[i])
	}
	return string(b)
}

// TestCompletions checks that each shell loads its completions, and that completion works in bash.
func TestCompletions(t *testing.T) {
	if err := manual(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		shell string
		files []string
	}{
		{"bash", []string{"zrlctl", "zrlmpid", "zrlbench"}},
		{"zsh", []string{"_zrlctl", "_zrlmpid", "_zrlbench"}},
		{"fish", []string{"zrlctl.fish", "zrlmpid.fish", "zrlbench.fish"}},
	} {
		t.Run(tt.shell, func(t *testing.T) {
			shell := needs(t, "completions of "+tt.shell, tt.shell, tt.shell)
			for _, file := range tt.files {
				if out, err := exec.Command(shell, "-n",
					from("bin/manual/completions/"+file)).CombinedOutput(); err != nil || len(out) > 0 {
					t.Errorf("%s: %v\n%s", file, err, out)
				}
			}
		})
	}
	t.Run("bash completes flags and files", func(t *testing.T) {
		bash := needs(t, "completion in bash", "bash", "bash")
		folder := t.TempDir()
		copyFile(t, filepath.Join(folder, "mine.yaml"), from("deploy/demo.yaml"), 0o644)
		for line, want := range map[string]string{"zrlmpid --chec": "--check-config", "zrlmpid -config mi": "mine.yaml",
			"zrlmpid -kernel e": ""} {
			words := strings.Fields(line)
			cmd := exec.Command(bash, "-c",
				`compopt() { :; }; . "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _zrlmpid; echo "${COMPREPLY[*]}"`,
				from("bin/manual/completions/zrlmpid"))
			cmd.Args = append(cmd.Args, words...)
			cmd.Dir, cmd.Stderr = folder, io.Discard
			if out, err := cmd.Output(); err != nil || strings.TrimSpace(string(out)) != want {
				t.Errorf("%q is completed with %q, %v; want %q", line, out, err, want)
			}
		}
	})
}
