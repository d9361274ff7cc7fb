// Command words finds retired words, which are identifiers and phrases that docs/glossary.md has replaced, and phrases
// that occur too often. It prints file:line of each retired word, and the rate of each phrase over its limit. It fails
// if there are any.
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

// run checks the repository in a folder, and prints the problems.
func run(root string) error {
	retired, err := readList(root, listPath, parseList)
	if err != nil {
		return err
	}
	phrases, err := readList(root, frequentPath, parseFrequent)
	if err != nil {
		return err
	}
	found, err := check(os.DirFS(root), retired)
	if err != nil {
		return err
	}
	over, err := checkFrequent(os.DirFS(root), phrases)
	if err != nil {
		return err
	}
	for _, f := range found {
		fmt.Println(f)
	}
	for _, line := range over {
		fmt.Println(line)
	}
	if len(found)+len(over) > 0 {
		return fmt.Errorf("%d retired words, %d frequent phrases; %s and %s list the replacements",
			len(found), len(over), listPath, frequentPath)
	}
	return nil
}

// readList reads and parses one of the lists.
func readList[T any](root, path string, parse func(text string) (T, error)) (T, error) {
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		var zero T
		return zero, err
	}
	list, err := parse(string(text))
	if err != nil {
		err = fmt.Errorf("%s: %w", path, err)
	}
	return list, err
}
