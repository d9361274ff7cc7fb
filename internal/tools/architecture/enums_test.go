package architecture

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	load "golang.org/x/tools/go/packages"
)

// TestEnums checks that no package of the product compares an enum, or a string field of a state, with a string
// literal, or compares an enum by its name.
func TestEnums(t *testing.T) {
	for _, c := range comparisons(t, nil, "./...") {
		t.Errorf("%s: use a constant of the type", c)
	}
}

// TestEnumsFound checks that TestEnums finds every form of comparison with text, and finds nothing else.
func TestEnumsFound(t *testing.T) {
	const planted = `package diagnosis

import "github.com/zrlmpi/zrlmpid/mpe/state"

func planted(p *state.Peer, r *state.RankInfo, d *state.Drop) int {
	const udp = "udp"
	switch {
	case p.Kind == "fpga": // found
	case "software" != p.Kind: // found
	case r.Address == "10.0.0.1": // found
	case d.Reason.String() == "short": // found
	case string(p.Transport) == udp: // found
	case p.Kind == state.KindCPU, p.Transport == udp, p.Profile == "", r.KernelError != "", "a" == string(rune(p.Rank)):
	}
	switch p.Transport {
	case state.TransportUDP, "tcp": // found
	case "":
	}
	switch p.Profile {
	case state.ProfileOf(0):
	}
	switch d.Reason.String() { // found
	case udp:
	}
	return 0
}
`
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i, line := range strings.Split(planted, "\n") {
		if strings.HasSuffix(line, "// found") {
			want = append(want, fmt.Sprintf("diagnosis/planted.go:%d", i+1))
		}
	}
	found := comparisons(t, map[string][]byte{filepath.Join(dir, "diagnosis/planted.go"): []byte(planted)},
		"./diagnosis")
	for i, c := range found {
		found[i], _, _ = strings.Cut(c, ": ")
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

// comparisons returns the positions where packages compare an enum with text. overlay adds files to the packages.
func comparisons(t *testing.T, overlay map[string][]byte, pattern string) (found []string) {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	list, err := load.Load(&load.Config{Mode: load.LoadSyntax, Dir: dir, Overlay: overlay}, pattern)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range list {
		for _, e := range p.Errors {
			t.Fatal(e)
		}
		if f, _ := floorOf(strings.TrimPrefix(p.PkgPath, module+"/")); f == outside { // test kits parse text
			continue
		}
		c := comparer{info: p.TypesInfo}
		for _, f := range p.Syntax {
			ast.Inspect(f, c.visit)
		}
		for _, at := range c.found {
			where := p.Fset.Position(at)
			file, err := filepath.Rel(dir, where.Filename)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, fmt.Sprintf("%s:%d: an enum is compared with text", filepath.ToSlash(file),
				where.Line))
		}
	}
	slices.Sort(found)
	return found
}

// comparer collects the places in a package where an enum is compared with text.
type comparer struct {
	info  *types.Info
	found []token.Pos
}

func (c *comparer) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		if (n.Op == token.EQL || n.Op == token.NEQ) && (c.isText(n.X, n.Y) || c.isText(n.Y, n.X)) {
			c.found = append(c.found, n.Pos())
		}
	case *ast.SwitchStmt:
		if n.Tag == nil {
			return true
		}
		if c.isName(n.Tag) {
			c.found = append(c.found, n.Pos())
			return true
		}
		for _, clause := range n.Body.List {
			for _, e := range clause.(*ast.CaseClause).List {
				if c.isText(n.Tag, e) {
					c.found = append(c.found, e.Pos())
				}
			}
		}
	}
	return true
}

// isText reports whether value is compared with other as text, and not with a constant of its type.
func (c *comparer) isText(value, other ast.Expr) bool {
	if c.isName(value) {
		return !isEmpty(other)
	}
	return isLiteral(other) && !isEmpty(other) && (isEnum(c.info.TypeOf(value)) || c.isStateField(value))
}

// isName reports whether an expression is an enum's text: a conversion of the enum, or a call to its String method.
func (c *comparer) isName(e ast.Expr) bool {
	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return false
	}
	if s, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr); ok && s.Sel.Name == "String" && len(call.Args) == 0 {
		return isEnum(c.info.TypeOf(s.X))
	}
	to := c.info.Types[call.Fun]
	return to.IsType() && types.Identical(to.Type, types.Typ[types.String]) && isEnum(c.info.TypeOf(call.Args[0]))
}

// isEnum reports whether t is a string or number type of this module that has constants.
func isEnum(t types.Type) bool {
	named, ok := types.Unalias(t).(*types.Named)
	if !ok || named.Obj().Pkg() == nil || !strings.HasPrefix(named.Obj().Pkg().Path(), module) {
		return false
	}
	basic, ok := named.Underlying().(*types.Basic)
	if !ok || basic.Info()&(types.IsString|types.IsInteger) == 0 {
		return false
	}
	scope := named.Obj().Pkg().Scope()
	return named.Obj().Pkg().Path() == module+"/mpe/state" ||
		slices.ContainsFunc(scope.Names(), func(name string) bool {
			k, ok := scope.Lookup(name).(*types.Const)
			return ok && types.Identical(k.Type(), named)
		})
}

// isStateField reports whether an expression is a string field of package state.
func (c *comparer) isStateField(e ast.Expr) bool {
	s, ok := ast.Unparen(e).(*ast.SelectorExpr)
	if !ok {
		return false
	}
	field := c.info.Selections[s]
	return field != nil && field.Kind() == types.FieldVal && field.Obj().Pkg().Path() == module+"/mpe/state" &&
		types.Identical(field.Type(), types.Typ[types.String])
}

func isLiteral(e ast.Expr) bool {
	l, ok := ast.Unparen(e).(*ast.BasicLit)
	return ok && l.Kind == token.STRING
}

// isEmpty reports whether an expression is an empty string literal, which is not the text of any constant.
func isEmpty(e ast.Expr) bool {
	l, ok := ast.Unparen(e).(*ast.BasicLit)
	return ok && (l.Value == `""` || l.Value == "``")
}
