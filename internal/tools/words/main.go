// Command words finds retired words: identifiers and phrases that docs/glossary.md has replaced. It prints file:line
// for each of them, and fails if there are any.
//
//	go -C internal/tools run ./words   # as in make lint
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "../..", "check the repository in this `folder`")
	flag.Parse()
	if err := run(*root); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(root string) error {
	path := filepath.Join(root, listPath)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	l, err := parseList(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	found, err := check(os.DirFS(root), l)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Println(f)
	}
	if len(found) > 0 {
		return fmt.Errorf("%d retired words; %s lists what to use", len(found), listPath)
	}
	return nil
}
