package main

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(?:#[^)]*)?\)`)
	quoted   = regexp.MustCompile("`([A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?)`")
	function = regexp.MustCompile("\\| `(?:([A-Za-z]+)\\.)?([A-Za-z]+)` \\| `([a-z0-9_/]+\\.go)` \\|")
)

// check returns the broken references in all Markdown files of the repository.
func check(repository fs.StatFS) (broken []string, err error) {
	err = fs.WalkDir(repository, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		text, err := fs.ReadFile(repository, name)
		if err != nil {
			return err
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			for _, problem := range checkLine(repository, name, line) {
				broken = append(broken, fmt.Sprintf("%s:%d: %s", name, n, problem))
			}
		}
		return nil
	})
	return broken, err
}

func checkLine(repository fs.StatFS, name, line string) (problems []string) {
	for _, m := range link.FindAllStringSubmatch(line, -1) {
		if target := m[1]; !strings.Contains(target, ":") && !exists(repository, path.Join(path.Dir(name), target)) {
			problems = append(problems, fmt.Sprintf("the link's target %q does not exist", target))
		}
	}
	for _, m := range quoted.FindAllStringSubmatch(line, -1) {
		if isPath(repository, m[1]) && !exists(repository, m[1]) {
			problems = append(problems, fmt.Sprintf("the path %q does not exist", m[1]))
		}
	}
	for _, m := range function.FindAllStringSubmatch(line, -1) {
		receiver := ""
		if m[1] != "" {
			receiver = `\(\w+ \*?` + m[1] + `\) `
		}
		code, err := fs.ReadFile(repository, m[3])
		if err == nil && !regexp.MustCompile(`(?m)^func `+receiver+m[2]+`\(`).Match(code) {
			problems = append(problems,
				fmt.Sprintf("%s declares no function %s", m[3], strings.Trim(m[1]+"."+m[2], ".")))
		}
	}
	return problems
}

// isPath reports whether text is a path from the root of the repository. It is one if its first folder exists there,
// unless it is the path of a file that is built.
func isPath(repository fs.StatFS, text string) bool {
	first, _, isLong := strings.Cut(text, "/")
	return isLong && first != "bin" && first != "." && first != ".." && exists(repository, first)
}

func exists(repository fs.StatFS, name string) bool {
	_, err := repository.Stat(path.Clean(name))
	return err == nil
}
