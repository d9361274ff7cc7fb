// Manual writes the manual pages of the C library into a folder: those of the compilers, out of the comment at the beginning of
// lib/compiler.sh, and zrlmpi(7). `make man` runs it, in the folder of the module.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/manual"
	"github.com/zrlmpi/zrlmpid/internal/version"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: go run ./lib/manual FOLDER")
		os.Exit(2)
	}
	if err := write("lib", os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "the library's manual:", err)
		os.Exit(1)
	}
}

func write(lib, folder string) error {
	date, err := manual.Date()
	if err != nil {
		return err
	}
	source := "zrlmpid " + version.String()
	library, err := os.ReadFile(filepath.Join(lib, "zrlmpi.7.md"))
	if err != nil {
		return err
	}
	script, err := os.ReadFile(filepath.Join(lib, "compiler.sh"))
	if err != nil {
		return err
	}
	pages := map[string][]byte{"zrlmpi.7": manual.Page("zrlmpi", "7", source, date, string(library))}
	for _, name := range compilers {
		text, err := compilerPage(name, string(script))
		if err != nil {
			return err
		}
		pages[name+".1"] = manual.Page(name, "1", source, date, text)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	for name, content := range pages {
		if err := os.WriteFile(filepath.Join(folder, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

var compilers = []string{"zrlmpicc", "zrlmpicxx", "zrlmpifort"}

// compilerPage is the page of a compiler, in Markdown.
func compilerPage(name, script string) (string, error) {
	_, comment, found := strings.Cut(script, "#!/bin/sh\n")
	if !found {
		return "", fmt.Errorf("lib/compiler.sh does not begin as a script of sh")
	}
	var help strings.Builder
	for line := range strings.Lines(comment) {
		text, ok := strings.CutPrefix(line, "#")
		if !ok {
			break
		}
		help.WriteString(strings.TrimPrefix(text, " "))
	}
	var others []string
	for _, other := range compilers {
		if other != name {
			others = append(others, "**"+other+"**(1)")
		}
	}
	return fmt.Sprintf("# NAME\n%s - compile and link a program with ZRLMPI\n\n# SYNOPSIS\n**%s** [**-abi=***name*] [**-show**] *arguments of the compiler*\n\n# DESCRIPTION\n%s\n# SEE ALSO\n%s, **zrlmpi**(7)\n",
		name, name, manual.Help(help.String()), strings.Join(others, ", ")), nil
}
