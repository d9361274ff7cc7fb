// Command words finds retired words: identifiers and phrases that docs/glossary.md has
// replaced. It prints file:line for each and fails if it finds one.
//
//	go -C internal/tools run ./words            # what make lint runs
//	go -C internal/tools run ./words -pending   # also count what is not enforced yet
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	root := flag.String("root", "../..", "check the repository in this `folder`")
	pending := flag.Bool("pending", false, "also count the occurrences of pending words, and print where they are")
	flag.Parse()
	if err := run(*root, *pending); err != nil {
		fmt.Fprintln(os.Stderr, "words:", err)
		os.Exit(1)
	}
}

func run(root string, pending bool) error {
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
	enforced := 0
	counts := map[*entry]int{}
	for _, f := range found {
		switch {
		case !f.entry.pending:
			enforced++
			fmt.Println(f)
		case pending:
			counts[f.entry]++
			fmt.Println(f)
		}
	}
	if pending {
		for _, e := range l.entries {
			if e.pending {
				fmt.Printf("%6d  %s\n", counts[e], e.text)
			}
		}
	}
	if enforced > 0 {
		return fmt.Errorf("%d retired words; %s lists what to use", enforced, listPath)
	}
	return nil
}
