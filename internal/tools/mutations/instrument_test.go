package main

import (
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
)

// eval evaluates a condition made of constants, in which the change number mutant is active.
func eval(t *testing.T, condition string, mutant int, values map[string]bool) bool {
	t.Helper()
	p := types.NewPackage("p", "p")
	p.Scope().Insert(types.NewConst(token.NoPos, p, "mutant", types.Typ[types.Int],
		constant.MakeInt64(int64(mutant))))
	for name, value := range values {
		p.Scope().Insert(types.NewConst(token.NoPos, p, name, types.Typ[types.UntypedBool], constant.MakeBool(value)))
	}
	v, err := types.Eval(token.NewFileSet(), p, token.NoPos, condition)
	if err != nil {
		t.Fatalf("%s: %v", condition, err)
	}
	return constant.BoolVal(v.Value)
}

// TestInstrument checks that an instrumented condition has the changed value if its change is active, and its original
// value otherwise.
func TestInstrument(t *testing.T) {
	const before, after = "package p\n\nfunc f() {\n\tif ", " {\n\t}\n}\n"
	for _, condition := range []string{
		"a", "!a", "a && b", "a||b", "a == b", "a != (b == c)", "a && b || c && !d", "a && (b || c) == d",
		"(a || b && c) || d",
		"!(a && b) || (c != d)",
	} {
		text := before + condition + after
		set := token.NewFileSet()
		tree, err := parser.ParseFile(set, "", text, 0)
		if err != nil {
			t.Fatal(err)
		}
		all := changes(set, tree)
		if len(all) == 0 {
			t.Errorf("%s: nothing is changed", condition)
		}
		var e edits
		for i := range all {
			all[i].number = i + 1
			e.instrument(&all[i])
		}
		cut := func(text string) string { return strings.TrimSuffix(strings.TrimPrefix(text, before), after) }
		instrumented := cut(string(e.apply([]byte(text))))
		for bits := range 16 {
			values := map[string]bool{"a": bits&1 > 0, "b": bits&2 > 0, "c": bits&4 > 0, "d": bits&8 > 0}
			if eval(t, instrumented, 0, values) != eval(t, condition, 0, values) {
				t.Fatalf("%s is changed with none selected: %v", instrumented, values)
			}
			for _, c := range all {
				changed := cut(text[:c.from] + c.text + text[c.to:])
				if c.text == "!" {
					changed = "!(" + condition + ")"
				}
				if eval(t, instrumented, c.number, values) != eval(t, changed, 0, values) {
					t.Errorf("%s, change %d: it is not %s of %v", instrumented, c.number, changed, values)
				}
			}
		}
	}
}
