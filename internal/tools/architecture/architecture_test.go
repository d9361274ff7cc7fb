// Package architecture checks that the source follows the rules of docs/architecture.md: floors, dependencies, and
// bounds that may only shrink.
package architecture

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	module = "github.com/zrlmpi/zrlmpid"
	root   = "../../.."
)

var update = flag.Bool("update", false, "write the lists in testdata")

// pkg is a package in the form in which the go command lists it.
type pkg struct {
	ImportPath string
	Dir        string
	Imports    []string
	Doc        string // first sentence of the doc comment
	Standard   bool
}

// path returns the folder of the package.
func (p *pkg) path() string { return strings.TrimPrefix(p.ImportPath, module+"/") }

// list runs go list with args.
func list(t *testing.T, args ...string) []pkg {
	t.Helper()
	cmd := exec.Command("go", append([]string{"list", "-json"}, args...)...)
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var packages []pkg
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

// floorOf returns the floor of a folder. If the folder has none, it returns the floor of the nearest parent that has
// one.
func floorOf(folder string) (floor, bool) {
	for {
		if f, ok := floors[folder]; ok {
			return f, true
		}
		up := strings.LastIndexByte(folder, '/')
		if up < 0 {
			return 0, false
		}
		folder = folder[:up]
	}
}

// inModule returns the folders of the packages in this module that a package imports.
func inModule(p *pkg) []string {
	var folders []string
	for _, path := range p.Imports {
		if folder, ok := strings.CutPrefix(path, module+"/"); ok {
			folders = append(folders, folder)
		}
	}
	return folders
}

// compare reports elements of found that are not in known, and elements of known that are not in found.
func compare(t *testing.T, what string, found, known []string) {
	t.Helper()
	for _, f := range found {
		if !slices.Contains(known, f) {
			t.Errorf("%s: %s", what, f)
		}
	}
	for _, k := range known {
		if !slices.Contains(found, k) {
			t.Errorf("%s: %s is gone: take it from the list in bounds_test.go", what, k)
		}
	}
}

// TestFloors checks that every package has a floor, and imports packages only on that floor or on floors below.
func TestFloors(t *testing.T) {
	for _, p := range list(t, "./...") {
		of, ok := floorOf(p.path())
		if !ok {
			t.Errorf("%s has no floor", p.path())
		}
		for _, folder := range inModule(&p) {
			if f, ok := floorOf(folder); ok && f > of && of != outside {
				t.Errorf("%s imports %s, which is up", p.path(), folder)
			}
		}
	}
}

// below reports whether path is one of the folders or is inside one of them.
func below(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// TestBarred checks that no package imports a package that is barred on its floor.
func TestBarred(t *testing.T) {
	var found []string
	for _, p := range list(t, "./...") {
		of, _ := floorOf(p.path())
		for _, path := range p.Imports {
			is := below(path, []string{"go.yaml.in/yaml"}) && of == rank && !slices.Contains(readsYAML, p.path())
			for f := of; f <= evidence; f++ {
				is = is || below(path, barred[f])
			}
			if is {
				found = append(found, p.path()+" imports "+path)
			}
		}
	}
	compare(t, "an import that the floor bars", found, excepted)
}

// TestImports checks that every import of a package in this module or of another party is listed. For pure packages,
// imports from the standard library must be listed, too. With -update it writes the list.
func TestImports(t *testing.T) {
	var text strings.Builder
	for _, p := range list(t, "./...") {
		of, _ := floorOf(p.path())
		if of == outside {
			continue
		}
		folders := slices.DeleteFunc(slices.Clone(p.Imports), func(path string) bool {
			standard := !strings.Contains(path, ".")
			return standard && of != pure
		})
		for _, path := range folders {
			fmt.Fprintf(&text, "%s imports %s\n", p.path(), strings.TrimPrefix(path, module+"/"))
		}
	}
	golden(t, "imports", text.String())
}

// TestPage checks that the package list in docs/architecture.md matches the doc comments and the rules. With -update it
// writes the list.
func TestPage(t *testing.T) {
	const begin, end = "<!-- packages: begin -->\n", "<!-- packages: end -->\n"
	file := filepath.Join(root, "docs/architecture.md")
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(page), begin)
	_, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s: no %q, or no %q", file, begin, end)
	}
	want := before + begin + packageList(t) + end + after
	switch {
	case want == string(page):
	case !*update:
		t.Errorf("the list of packages in %s is out of date: go -C internal/tools test ./architecture -update", file)
	default:
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// packageList returns a Markdown list of the packages on each floor.
func packageList(t *testing.T) string {
	var text strings.Builder
	packages := list(t, "-tags", "manual", "./...")
	listed := map[string]bool{}
	for f, name := range floorNames[:outside] {
		fmt.Fprintf(&text, "\n### %s\n\n", strings.ToUpper(name[:1])+name[1:])
		for _, p := range packages {
			if of, _ := floorOf(p.path()); of != floor(f) || p.Doc == "" || below(p.path(), []string{"examples"}) {
				continue
			}
			listed[p.path()] = true
			item := "- `" + p.path() + "`: " + isClause(p.Doc)
			if n := never[p.path()]; n != "" {
				item += " *Never*: " + n + "."
			}
			text.WriteString(wrap(item, 120, "  "))
		}
	}
	for path := range never {
		if !listed[path] {
			t.Errorf("never has %s, which is no package", path)
		}
	}
	text.WriteString("\n")
	return text.String()
}

// isClause returns doc, the first sentence of a doc comment, without "Package x is", "Package x" or "Command x".
func isClause(doc string) string {
	words := strings.SplitN(doc, " ", 4)
	if len(words) < 4 || words[0] != "Package" && words[0] != "Command" {
		return doc
	}
	if words[2] == "is" {
		return words[3]
	}
	return words[2] + " " + words[3]
}

// wrap breaks text into lines of at most width characters. It indents all lines except the first.
func wrap(text string, width int, indent string) string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = indent + word
		}
	}
	return strings.Join(append(lines, line), "\n") + "\n"
}

// TestFolders checks that no two top-level folders import each other, and that the numbers of folders and packages do
// not grow.
func TestFolders(t *testing.T) {
	imports, product, top := map[[2]string]bool{}, 0, map[string]bool{}
	of := func(folder string) string { name, _, _ := strings.Cut(folder, "/"); return name }
	for _, p := range list(t, "./...") {
		if f, _ := floorOf(p.path()); f == outside {
			continue
		}
		product++
		top[of(p.path())] = true
		for _, folder := range inModule(&p) {
			imports[[2]string{of(p.path()), of(folder)}] = true
		}
	}
	var both []string
	for pair := range imports {
		if pair[0] < pair[1] && imports[[2]string{pair[1], pair[0]}] {
			both = append(both, pair[0]+" "+pair[1])
		}
	}
	slices.Sort(both)
	compare(t, "folders that import each other", both, mutual)
	bound(t, "packages of the product", product, packages)
	bound(t, "folders at the top", len(top), folders)
}

// bound reports an error if a figure differs from its known value.
func bound(t *testing.T, what string, n, known int) {
	t.Helper()
	switch {
	case n > known:
		t.Errorf("%d %s, at most %d", n, what, known)
	case n < known:
		t.Errorf("%d %s: lower the bound of %d in bounds_test.go", n, what, known)
	}
}

// TestDependencies checks that the packages linked into a program are listed. With -update it writes the lists.
func TestDependencies(t *testing.T) {
	for _, name := range closures {
		var text strings.Builder
		for _, p := range list(t, "-deps", "./"+name) {
			if !p.Standard {
				fmt.Fprintln(&text, strings.TrimPrefix(p.ImportPath, module+"/"))
			}
		}
		lines := strings.Split(strings.TrimSpace(text.String()), "\n")
		slices.Sort(lines)
		want := strings.Join(lines, "\n") + "\n"
		golden(t, strings.ReplaceAll(name, "/", "_"), want)
	}
}

// golden compares text with a file in testdata. With -update it writes text to the file.
func golden(t *testing.T, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	known, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(known) != text {
		t.Errorf("%s has changed:\n%sgo -C internal/tools test ./architecture -update writes it anew; read the "+
			"difference", file,
			difference(string(known), text))
	}
}

// difference lists the lines that only one of the two texts contains.
func difference(known, found string) string {
	var text strings.Builder
	in := func(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }
	for _, line := range in(known) {
		if !slices.Contains(in(found), line) {
			fmt.Fprintln(&text, "-", line)
		}
	}
	for _, line := range in(found) {
		if !slices.Contains(in(known), line) {
			fmt.Fprintln(&text, "+", line)
		}
	}
	return text.String()
}

// TestMethods checks that types do not gain methods.
func TestMethods(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		folder, typ, _ := strings.Cut(name, ".")
		bound(t, "methods of "+name, countMethods(t, filepath.Join(root, folder), typ), methods[name])
	}
}

// TestTransports checks that the number of kinds of transports required by an engine does not grow.
func TestTransports(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, "mpe/transport.go"), nil,
		parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		if _, ok := node.(*ast.InterfaceType); ok {
			n++
		}
		return true
	})
	bound(t, "interfaces of transports", n, transports)
}

// countMethods counts the methods of a struct or interface type in a folder. It ignores tests.
func countMethods(t *testing.T, folder, typ string) int {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if receives(d, typ) {
					names[d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					s, ok := spec.(*ast.TypeSpec)
					if !ok || s.Name.Name != typ {
						continue
					}
					if i, ok := s.Type.(*ast.InterfaceType); ok {
						for _, m := range i.Methods.List {
							for _, n := range m.Names {
								names[n.Name] = true
							}
						}
					}
				}
			}
		}
	}
	if len(names) == 0 {
		t.Errorf("no methods of %s in %s", typ, folder)
	}
	return len(names)
}

// receives reports whether a function is a method of a type.
func receives(d *ast.FuncDecl, typ string) bool {
	if d.Recv == nil {
		return false
	}
	of := d.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	name, ok := of.(*ast.Ident)
	return ok && name.Name == typ
}
