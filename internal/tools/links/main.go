// Command links checks references in the Markdown files of the repository. It checks that targets of relative links
// exist, that paths in backquotes exist, and, in tables that list functions with their files, that each file declares
// its function. For each broken reference it prints file:line.
//
//	go -C internal/tools run ./links
package main

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
)

func main() {
	root := flag.String("root", "../..", "check the repository in this `folder`")
	flag.Parse()
	broken, err := check(os.DirFS(*root).(fs.StatFS))
	if err == nil && len(broken) > 0 {
		err = fmt.Errorf("%d broken references", len(broken))
	}
	for _, b := range broken {
		fmt.Println(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(1)
	}
}
