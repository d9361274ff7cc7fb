// Command links checks the references in the Markdown files of the repository: the targets of relative links, paths in
// backquotes, and, in tables that list a function with its file, that the file declares the function. It prints
// file:line for each broken reference.
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
		err = fmt.Errorf("%d references to what does not exist", len(broken))
	}
	for _, b := range broken {
		fmt.Println(b)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "links:", err)
		os.Exit(1)
	}
}
