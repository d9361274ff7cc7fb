package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// drawn are the packages that random changes are made in, each with the tests that may notice.
var drawn = []struct {
	folder string
	by     []test
}{
	{"mpe/core", []test{
		{"its own tests", []string{"./mpe/core", "-short", "-failfast"}}, {"mpe", []string{"./mpe", "-short", "-failfast"}},
		{"the simulations", []string{"./mpe/core", "-failfast"}},
		{"mpi", []string{"./mpi", "./transport/shm", "./daemon/attach", "./node"}},
	}},
	{"mpe/state", []test{
		{"its own tests", []string{"./mpe/state"}}, {"node", []string{"./node", "./mpe", "./mpe/core"}},
		{"the daemon", []string{"./daemon/...", "./metrics", "./cmd/zrlctl"}},
	}},
	{"internal/query", []test{
		{"its own tests", []string{"./internal/query"}}, {"those that answer", []string{"./node", "./internal/jobs", "./daemon/..."}},
		{"zrlctl", []string{"./cmd/zrlctl"}},
	}},
	{"mpi/job", []test{
		{"its own tests", []string{"./mpi/job"}}, {"examples", []string{"./examples/...", "./lib/capi"}}, {"zrlctl", []string{"./cmd/zrlctl"}},
	}},
}

// change is a place in a file with other text.
type change struct {
	folder   string // of drawn
	file     string // from the root
	line     int
	from, to int // offsets
	text     string
	by       []test
}

// others are what operators become.
var others = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&",
}

// random makes n changes to comparisons, conditions and constants, at places that a seed chooses, and prints which were
// not noticed. At least nine in ten have to be.
func random(root string, n int, seed uint64) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	places, err := placesIn(root)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
	tried, missed := 0, 0
	for _, c := range places {
		if tried == n {
			break
		}
		start := time.Now()
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			return err
		}
		changed := string(text[:c.from]) + c.text + string(text[c.to:])
		by, err := noticed(root, c.file, []byte(changed), c.by)
		if err != nil { // it does not compile, or does not end, which tests notice
			if strings.Contains(err.Error(), "does not compile") {
				continue
			}
			by = "does not end"
		}
		tried++
		if by == "" {
			missed++
			by = "NOT NOTICED"
		}
		line := strings.TrimSpace(string(text[bytes.LastIndexByte(text[:c.from], '\n')+1 : c.to+bytes.IndexByte(text[c.to:], '\n')]))
		fmt.Printf("%3d %s:%d %q → %q in %s: %s (%v)\n", tried, c.file, c.line, text[c.from:c.to], c.text, line, by,
			time.Since(start).Round(time.Second))
	}
	if 10*missed > tried {
		return fmt.Errorf("%d of %d changes were not noticed", missed, tried)
	}
	fmt.Printf("%d of %d changes were noticed\n", tried-missed, tried)
	return nil
}

// placesIn returns all places that may be changed.
func placesIn(root string) (places []change, err error) {
	for _, d := range drawn {
		files, err := filepath.Glob(filepath.Join(root, d.folder, "*.go"))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			set := token.NewFileSet()
			tree, err := parser.ParseFile(set, file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			relative, err := filepath.Rel(root, file)
			if err != nil {
				return nil, err
			}
			add := func(from token.Pos, length int, text string) {
				at := set.Position(from)
				places = append(places, change{d.folder, relative, at.Line, at.Offset, at.Offset + length, text, d.by})
			}
			ast.Inspect(tree, func(node ast.Node) bool {
				switch x := node.(type) {
				case *ast.BinaryExpr:
					if to, ok := others[x.Op]; ok {
						add(x.OpPos, len(x.Op.String()), to)
					}
				case *ast.IfStmt:
					if _, compares := x.Cond.(*ast.BinaryExpr); !compares {
						add(x.Cond.Pos(), 0, "!")
					}
				case *ast.BasicLit:
					if value, err := strconv.Atoi(x.Value); x.Kind == token.INT && err == nil {
						add(x.Pos(), len(x.Value), strconv.Itoa(value+1))
					}
				}
				return true
			})
		}
	}
	return places, nil
}
