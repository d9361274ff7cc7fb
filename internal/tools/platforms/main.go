// Command platforms type-checks all packages of the repository, including tests, for every platform in the table in
// README.md. It finds the errors that a compiler would report, in a fraction of the time: it compiles nothing, and
// parses only the declarations of other modules and of the standard library.
//
//	go -C internal/tools run ./platforms
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
)

func main() {
	root := flag.String("root", "../..", "check the repository in this `folder`")
	flag.Parse()
	problems, err := run(*root)
	for _, p := range problems {
		fmt.Println(p)
	}
	if err == nil && len(problems) > 0 {
		err = fmt.Errorf("%d errors", len(problems))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "platforms:", err)
		os.Exit(1)
	}
}

// run checks the repository for all platforms.
func run(root string) (problems []string, err error) {
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		return nil, err
	}
	list := platforms(string(readme))
	if len(list) == 0 {
		return nil, fmt.Errorf("README.md has no table whose rows begin with platforms such as `linux/amd64`")
	}
	debug.SetGCPercent(200) // use more memory to save processor time
	c := newChecker(root)
	for _, p := range list {
		if p == (platform{runtime.GOOS, runtime.GOARCH}) {
			continue // golangci-lint compiles for this platform
		}
		found, err := c.check(p, "./...")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p, err)
		}
		problems = append(problems, found...)
	}
	return problems, nil
}
