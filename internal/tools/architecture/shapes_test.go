package architecture

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// waitFields lists typical names of fields in a type that describes a wait. Fields in the three lines name the peer,
// the object, and the start or the duration.
var waitFields = [][]string{
	{"peer", "remote", "to", "on"},
	{"for", "awaited", "what", "state", "missing", "waitsfor"},
	{"since", "seconds", "elapsed", "age"},
}

// eachFile calls visit for every source file of the product. It skips tests and generated files.
func eachFile(t *testing.T, visit func(folder string, fset *token.FileSet, f *ast.File)) {
	t.Helper()
	fset := token.NewFileSet()
	for _, p := range list(t, "./...") {
		if f, _ := floorOf(p.path()); f == outside {
			continue
		}
		files, err := filepath.Glob(filepath.Join(p.Dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, file, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			if !ast.IsGenerated(f) {
				visit(p.path(), fset, f)
			}
		}
	}
}

// TestWaits checks that the number of types that describe a wait does not grow. A type that embeds such a type does not
// count.
func TestWaits(t *testing.T) {
	var found []string
	eachFile(t, func(folder string, _ *token.FileSet, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.TypeSpec); ok && describesWait(s) {
				found = append(found, folder+"."+s.Name.Name)
			}
			return true
		})
	})
	compare(t, "a type that describes a wait", found, waits)
}

// describesWait reports whether a type is a struct with a field from every line of waitFields. If its name contains
// Wait, fields from two of the lines are enough.
func describesWait(s *ast.TypeSpec) bool {
	typ, ok := s.Type.(*ast.StructType)
	if !ok {
		return false
	}
	var names []string
	for _, f := range typ.Fields.List {
		for _, n := range f.Names {
			names = append(names, strings.ToLower(n.Name))
		}
	}
	fields := 0
	for _, line := range waitFields {
		if slices.ContainsFunc(line, func(name string) bool { return slices.Contains(names, name) }) {
			fields++
		}
	}
	return fields == len(waitFields) || fields == len(waitFields)-1 && strings.Contains(s.Name.Name, "Wait")
}

// TestSizes checks that the longest file and the longest function do not grow beyond their bounds, in tens of lines.
func TestSizes(t *testing.T) {
	var file, function size
	eachFile(t, func(folder string, fset *token.FileSet, f *ast.File) {
		start := fset.Position(f.FileStart)
		file.note(filepath.Join(folder, filepath.Base(start.Filename)), fset.Position(f.FileEnd).Line-start.Line)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.FuncDecl); ok {
				function.note(folder+"."+d.Name.Name, fset.Position(d.End()).Line-fset.Position(d.Pos()).Line+1)
			}
		}
	})
	bound(t, fmt.Sprintf("lines (in tens) of %s, the longest file", file.name), (file.lines+9)/10, fileTens)
	bound(t, fmt.Sprintf("lines (in tens) of %s, the longest function", function.name), (function.lines+9)/10,
		functionTens)
}

// size is the longest item seen so far.
type size struct {
	name  string
	lines int
}

func (s *size) note(name string, lines int) {
	if lines > s.lines {
		*s = size{name, lines}
	}
}
