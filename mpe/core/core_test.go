package core_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestCoreIsPure checks that nothing in this package starts or waits for a goroutine, has a channel, takes a
// lock, reads a clock or draws a random number. So a simulation can run the core, event by event.
func TestCoreIsPure(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		seen++
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range impure(f) {
			t.Errorf("%v: %s, which is for a driver", fset.Position(what.pos), what.text)
		}
	}
	if seen < 20 {
		t.Errorf("only %d files were read", seen)
	}
}

// TestImpure checks that impure finds violations.
func TestImpure(t *testing.T) {
	for _, tt := range []struct{ text, what string }{
		{`import "sync"`, "it imports sync"},
		{`import "math/rand/v2"`, "it imports math/rand/v2"},
		{`func f() { go f() }`, "it starts a goroutine"},
		{`func f(c chan int) {}`, "it has a channel"},
		{`func f() { c <- 1 }`, "it sends to a channel"},
		{`func f() { <-c }`, "it receives from a channel"},
		{`func f() { select {} }`, "it selects"},
		{`import "time"; func f() { time.Now() }`, "it calls time.Now"},
		{`import "time"; func f() { time.AfterFunc(1, f) }`, "it calls time.AfterFunc"},
		{`import "time"; const d = time.Second`, ""},
	} {
		f, err := parser.ParseFile(token.NewFileSet(), "", "package p; "+tt.text, 0)
		if err != nil {
			t.Fatal(err)
		}
		var found []string
		for _, what := range impure(f) {
			found = append(found, what.text)
		}
		if got := strings.Join(found, ", "); got != tt.what {
			t.Errorf("%s: %q, not %q", tt.text, got, tt.what)
		}
	}
}

// finding is a violation of the rules of a core.
type finding struct {
	pos  token.Pos
	text string
}

// impure finds violations of the rules of a core.
func impure(f *ast.File) (found []finding) {
	add := func(n ast.Node, text string) { found = append(found, finding{n.Pos(), text}) }
	for _, i := range f.Imports {
		path, _ := strconv.Unquote(i.Path.Value)
		if slices.Contains([]string{"sync", "sync/atomic", "math/rand", "math/rand/v2", "crypto/rand", "runtime", "net",
			"os"}, path) {
			add(i, "it imports "+path)
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			add(n, "it starts a goroutine")
		case *ast.SelectStmt:
			add(n, "it selects")
		case *ast.ChanType:
			add(n, "it has a channel")
		case *ast.SendStmt:
			add(n, "it sends to a channel")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				add(n, "it receives from a channel")
			}
		case *ast.SelectorExpr:
			x, ok := n.X.(*ast.Ident)
			if ok && x.Name == "time" &&
				slices.Contains([]string{"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick",
					"Sleep"}, n.Sel.Name) {
				add(n, "it calls time."+n.Sel.Name)
			}
		}
		return true
	})
	return found
}
