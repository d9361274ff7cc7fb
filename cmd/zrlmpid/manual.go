//go:build manual

package main

import (
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/zrlmpi/zrlmpid/internal/manual"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

//go:embed zrlmpid.8.md
var page string

// With the build tag manual, the program writes the manual pages and completions of zrlmpid
// into a folder, from the reference configuration, so that the generators are not part of
// zrlmpid. `make man` runs it.
func init() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: go run -tags manual ./cmd/zrlmpid REFERENCE FOLDER")
		os.Exit(exitUsage)
	}
	if err := writeManual(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "zrlmpid's manual:", err)
		os.Exit(exitFailure)
	}
	os.Exit(exitOK)
}

func writeManual(reference, folder string) error {
	date, err := manual.Date()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(reference)
	if err != nil {
		return err
	}
	keys, err := manual.Keys(text)
	if err != nil {
		return fmt.Errorf("%s: %w", reference, err)
	}
	options := pflag.NewFlagSet("zrlmpid", pflag.ContinueOnError)
	options.AddGoFlagSet(new(flags).set())
	source := "zrlmpid " + version.String()
	daemon := strings.Replace(page, "{{options}}", manual.Options(options), 1)
	if daemon == page {
		return fmt.Errorf("the page has no place for the options")
	}
	for name, content := range map[string][]byte{
		"man/zrlmpid.8":            manual.Page("zrlmpid", "8", source, date, daemon),
		"man/zrlmpid.yaml.5":       manual.Page("zrlmpid.yaml", "5", source, date, keys),
		"completions/zrlmpid":      []byte(manual.Bash("zrlmpid", options)),
		"completions/_zrlmpid":     []byte(manual.Zsh("zrlmpid", options)),
		"completions/zrlmpid.fish": []byte(manual.Fish("zrlmpid", options)),
	} {
		path := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
