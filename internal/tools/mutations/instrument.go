package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/token"
	"slices"
)

// chosen is the environment variable that contains the number of the change to activate in an instrumented package.
const chosen = "MUTANT"

// helpers is the source of a file that is added to each instrumented package.
const helpers = `package %s

import (
	"cmp"
	"os"
	"strconv"
)

var mutant, _ = strconv.Atoi(os.Getenv("` + chosen + `"))

func mutantLess[T cmp.Ordered](n int, a, b T) bool { return a < b || mutant == n && a == b }

func mutantAtMost[T cmp.Ordered](n int, a, b T) bool { return a < b || mutant != n && a == b }

func mutantMore[T cmp.Ordered](n int, a, b T) bool { return a > b || mutant == n && a == b }

func mutantAtLeast[T cmp.Ordered](n int, a, b T) bool { return a > b || mutant != n && a == b }
`

// comparisons maps each comparison operator to a helper function that replaces it. If the number of the helper's call
// is active, the helper inverts the result for equal operands.
var comparisons = map[token.Token]string{
	token.LSS: "mutantLess", token.LEQ: "mutantAtMost", token.GTR: "mutantMore", token.GEQ: "mutantAtLeast",
}

// edits holds texts to insert into a file before and after expressions, which may be nested. Outer expressions come
// first in both lists, so that they open first and close last.
type edits struct{ open, close []edit }

type edit struct {
	from, to int
	text     string
}

// instrument makes the change c conditional on its number, so that a package with all its changes is compiled only
// once.
func (e *edits) instrument(c *change) {
	flip := fmt.Sprintf(") != (mutant == %d)", c.number)
	x, binary := c.expr.(*ast.BinaryExpr)
	switch {
	case binary && comparisons[x.Op] != "":
		e.opens(c.at(x.Pos()), fmt.Sprintf("%s(%d, ", comparisons[x.Op], c.number))
		e.open = append(e.open, edit{c.at(x.OpPos), c.at(x.OpPos) + len(x.Op.String()), ","})
		e.closes(c.at(x.End()), ")")
	case binary && (x.Op == token.LAND || x.Op == token.LOR): // x || y is the same as !(!x && !y)
		e.opens(c.at(x.Pos()), "((((")
		e.opens(c.at(x.Y.Pos()), "((")
		e.closes(c.at(x.X.End()), flip+")")
		e.closes(c.at(x.End()), flip+")"+flip+")")
	default:
		e.opens(c.at(c.expr.Pos()), "((")
		e.closes(c.at(c.expr.End()), flip+")")
	}
}

func (e *edits) opens(at int, text string)  { e.open = append(e.open, edit{at, at, text}) }
func (e *edits) closes(at int, text string) { e.close = append(e.close, edit{at, at, text}) }

// apply applies all edits to the text of a file.
func (e *edits) apply(text []byte) []byte {
	all := slices.Clone(e.close)
	slices.Reverse(all)
	all = append(all, e.open...)
	slices.SortStableFunc(all, func(a, b edit) int { return a.from - b.from })
	var b bytes.Buffer
	at := 0
	for _, edit := range all {
		b.Write(text[at:edit.from])
		b.WriteString(edit.text)
		at = edit.to
	}
	b.Write(text[at:])
	return b.Bytes()
}
