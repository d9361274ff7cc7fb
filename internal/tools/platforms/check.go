package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"golang.org/x/tools/go/packages"
)

// platform is a GOOS with a GOARCH.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "/" + p.arch }

var name = regexp.MustCompile("`([a-z0-9]+)/([a-z0-9]+)`")

// platforms returns the platforms listed in the first columns of the tables in a page.
func platforms(page string) (list []platform) {
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 2 || cells[0] != "" || !strings.HasPrefix(strings.TrimSpace(cells[1]), "`") {
			continue
		}
		for _, m := range name.FindAllStringSubmatch(cells[1], -1) {
			list = append(list, platform{m[1], m[2]})
		}
	}
	return list
}

// checker type-checks the packages in a folder for one platform at a time. It parses each file only once.
type checker struct {
	folder string
	fset   *token.FileSet
	mu     sync.Mutex
	parsed map[string]*parsedFile
}

type parsedFile struct {
	once sync.Once
	file *ast.File
	err  error
}

func newChecker(folder string) *checker {
	return &checker{folder: folder + string(os.PathSeparator), fset: token.NewFileSet(),
		parsed: map[string]*parsedFile{}}
}

// check type-checks the packages that match a pattern, including their tests. It returns the errors that it finds.
func (c *checker) check(p platform, pattern string) (problems []string, err error) {
	list, err := packages.Load(&packages.Config{
		Mode: packages.LoadAllSyntax &^ packages.NeedTypesInfo, Dir: c.folder, Tests: true, Fset: c.fset,
		ParseFile: c.parse,
		Env:       append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "CGO_ENABLED=0"),
	}, pattern)
	if err != nil {
		return nil, err
	}
	for _, pkg := range list {
		for _, e := range pkg.Errors {
			if where, ok := strings.CutPrefix(e.Pos, c.folder); ok || e.Kind != packages.TypeError {
				problems = append(problems, fmt.Sprintf("%s: %s: %s", p, where, e.Msg))
			}
		}
	}
	slices.Sort(problems) // a package is checked both with and without its tests
	return slices.Compact(problems), nil
}

// parse parses a file. If the file is outside the folder, parse skips the bodies of functions.
func (c *checker) parse(fset *token.FileSet, name string, text []byte) (*ast.File, error) {
	c.mu.Lock()
	f := c.parsed[name]
	if f == nil {
		f = new(parsedFile)
		c.parsed[name] = f
	}
	c.mu.Unlock()
	f.once.Do(func() {
		f.file, f.err = parser.ParseFile(fset, name, text, parser.SkipObjectResolution)
		if f.file == nil || strings.HasPrefix(name, c.folder) {
			return
		}
		for _, d := range f.file.Decls {
			if function, ok := d.(*ast.FuncDecl); ok {
				function.Body = nil
			}
		}
	})
	return f.file, f.err
}
