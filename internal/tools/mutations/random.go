package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// drawn lists the files in which random changes are made, and the tests that may detect the changes, fastest first.
var drawn = []struct {
	files []string
	by    []test
}{
	{[]string{"mpe/core/*.go"}, []test{
		quick("its own tests", "./mpe/core", "-skip", "TestSimulationOfMPIAgain"), quick("mpe", "./mpe"),
		quick("node", "./node"),
		quick("mpi", "./mpi"), quick("shm", "./transport/shm"), quick("the library", "./lib/capi"),
		quick("zrlctl", "./cmd/zrlctl"), quick("the daemon", "./daemon/attach", "./daemon/statuspage/..."),
	}},
	{[]string{"mpe/state/*.go"}, []test{
		quick("its own tests", "./mpe/state"), quick("the engine", "./mpe", "./mpe/core"),
		quick("its users", "./node", "./metrics", "./daemon/statuspage/...", "./daemon/control", "./diagnosis/..."),
		quick("zrlctl", "./cmd/zrlctl"), quick("the daemon", "./daemon"),
	}},
	{[]string{"internal/query/*.go", "node/report.go", "daemon/status.go", "daemon/control/job.go"}, []test{
		quick("its own tests", "./internal/query", "./node", "./daemon", "./daemon/control"),
		quick("jobs", "./internal/jobs"), quick("zrlctl", "./cmd/zrlctl"),
	}},
	{[]string{"diagnosis/*.go", "diagnosis/infer/*.go"}, []test{
		quick("its own tests", "./diagnosis", "./diagnosis/infer"),
		quick("simulated hangs", "./internal/integration/diagnose"),
		quick("zrlctl", "./cmd/zrlctl"),
	}},
	{[]string{"mpi/job/*.go"}, []test{
		quick("its own tests", "./mpi/job"), quick("the library", "./lib/capi"), quick("examples", "./examples/..."),
		quick("zrlctl", "./cmd/zrlctl"),
	}},
}

// quick returns a test that runs the tests of the given packages until one fails. It also counts as failed after three
// minutes.
func quick(name string, args ...string) test {
	return test{name, append(args, "-short", "-failfast", "-timeout", "3m")}
}

// change describes a random change: it replaces the text at one position in a file.
type change struct {
	number   int
	group    int    // the index in drawn
	file     string // the path from the root
	line     int
	from, to int // offsets
	text     string
	by       []test
	expr     ast.Expr                // the expression whose operator or value changes, or nil for a constant
	at       func(pos token.Pos) int // at returns the offset of a position
}

func (c *change) place() string { return fmt.Sprintf("%s:%d", c.file, c.line) }

// others maps each operator to its replacement.
var others = map[token.Token]string{
	token.EQL: "!=", token.NEQ: "==", token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">",
	token.LAND: "||", token.LOR: "&&",
}

// random makes n changes to comparisons, conditions and constants, at positions determined by a seed. It prints the
// changes that no test detects, and returns an error unless at least nine in ten are detected.
func random(root, only string, own bool, n int, seed uint64) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	most := math.MaxInt // maximum number of tests per change
	if own {
		most = 1
	}
	p, err := placesIn(root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutations")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	instrumented, err := overlay(root, dir, p.texts)
	if err != nil {
		return err
	}
	for i, d := range drawn { // a test that fails without any change would seem to detect every change
		if !slices.ContainsFunc(p.changes, func(c change) bool { return c.group == i && strings.Contains(c.place(), only) }) {
			continue
		}
		failing, output, err := failed(root, d.by[:min(len(d.by), most)], instrumented)
		if failing != "" {
			err = fmt.Errorf("%s: %s fails without any change, so try again when the machine is idle:\n%s", d.files, failing,
				output)
		}
		if err != nil {
			return err
		}
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	rng.Shuffle(len(p.changes), func(i, j int) { p.changes[i], p.changes[j] = p.changes[j], p.changes[i] })
	tried, missed := 0, 0
	for i := 0; i < len(p.changes) && tried < n; i++ {
		c := p.changes[i]
		if !strings.Contains(c.place(), only) {
			continue
		}
		c.by = c.by[:min(len(c.by), most)]
		start := time.Now()
		text, err := os.ReadFile(filepath.Join(root, c.file))
		if err != nil {
			return err
		}
		by, err := c.noticed(root, text, instrumented)
		if err != nil && strings.Contains(err.Error(), "does not compile") {
			continue // draw another change
		}
		if err != nil {
			return err
		}
		tried++
		if by == "" {
			missed++
			by = "NOT NOTICED"
		}
		begin, end := bytes.LastIndexByte(text[:c.from], '\n')+1, c.to+bytes.IndexByte(text[c.to:], '\n')
		fmt.Printf("%3d %s %q → %q in %s: %s (%v)\n", tried, c.place(), text[c.from:c.to], c.text,
			bytes.TrimSpace(text[begin:end]), by, time.Since(start).Round(time.Second))
	}
	if 10*missed > tried {
		return fmt.Errorf("%d of %d changes were not noticed", missed, tried)
	}
	fmt.Printf("%d of %d changes were noticed\n", tried-missed, tried)
	return nil
}

// noticed returns the name of a test that fails when the change is made, or "" if all pass.
func (c *change) noticed(root string, text []byte, instrumented string) (string, error) {
	if c.expr != nil {
		failing, _, err := failed(root, c.by, instrumented, chosen+"="+strconv.Itoa(c.number))
		return caughtBy(failing), err
	}
	return noticed(root, c.file, []byte(string(text[:c.from])+c.text+string(text[c.to:])), c.by)
}

// places holds all changes that can be made, and the texts of the instrumented files. Changes of constants are not
// instrumented, because a program may need the constants at compile time.
type places struct {
	changes []change
	texts   map[string][]byte
}

// placesIn finds the possible changes in the files listed in drawn.
func placesIn(root string) (*places, error) {
	p := &places{texts: make(map[string][]byte)}
	for group, d := range drawn {
		for _, pattern := range d.files {
			files, err := filepath.Glob(filepath.Join(root, pattern))
			if err != nil {
				return nil, err
			}
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				if err := p.add(group, file, path.Join(path.Dir(pattern), filepath.Base(file))); err != nil {
					return nil, err
				}
			}
		}
	}
	return p, nil
}

// add adds the possible changes in a file of a group. name is the path from the root.
func (p *places) add(group int, file, name string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	var e edits
	for _, c := range changes(set, tree) {
		c.number, c.group, c.file, c.by = len(p.changes)+1, group, name, drawn[group].by
		if c.expr != nil {
			e.instrument(&c)
		}
		p.changes = append(p.changes, c)
	}
	p.texts[name] = e.apply(text)
	p.texts[path.Join(path.Dir(name), "mutant.go")] = fmt.Appendf(nil, helpers, tree.Name.Name)
	return nil
}

// changes returns the possible changes in a file. A change of an expression precedes changes inside that expression.
func changes(set *token.FileSet, tree *ast.File) (all []change) {
	at := func(pos token.Pos) int { return set.Position(pos).Offset }
	add := func(from token.Pos, length int, text string, expr ast.Expr) {
		all = append(all, change{line: set.Position(from).Line, from: at(from), to: at(from) + length, text: text,
			expr: expr, at: at})
	}
	ast.Inspect(tree, func(node ast.Node) bool {
		switch x := node.(type) {
		case *ast.BinaryExpr:
			if to, ok := others[x.Op]; ok {
				add(x.OpPos, len(x.Op.String()), to, x)
			}
		case *ast.IfStmt:
			if _, compares := x.Cond.(*ast.BinaryExpr); !compares {
				add(x.Cond.Pos(), 0, "!", x.Cond)
			}
		case *ast.BasicLit:
			if value, err := strconv.Atoi(x.Value); x.Kind == token.INT && err == nil {
				add(x.Pos(), len(x.Value), strconv.Itoa(value+1), nil)
			}
		}
		return true
	})
	return all
}
