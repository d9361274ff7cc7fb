package caching_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpi/caching"
)

type object struct {
	name string
	caching.Attributes[*object]
}

// TestOrder checks that copies are made in the order of Set and deletions in reverse, and that a value is deleted
// before it is replaced.
func TestOrder(t *testing.T) {
	var log []string
	key := func(name string, keep bool) *caching.Key[*object] {
		return caching.NewKey(func(o *object, _ *caching.Key[*object], v any) (any, bool, error) {
			log = append(log, fmt.Sprintf("copy %s %s %v", o.name, name, v))
			return v.(int) + 1, keep, nil
		}, func(o *object, _ *caching.Key[*object], v any) error {
			log = append(log, fmt.Sprintf("delete %s %s %v", o.name, name, v))
			return nil
		})
	}
	a, b, c := key("a", true), key("b", false), key("c", true)
	none := caching.NewKey[*object](nil, nil)
	same := caching.NewKey(caching.KeepValue[*object], nil)
	x, y := &object{name: "x"}, &object{name: "y"}
	for i, k := range []*caching.Key[*object]{a, b, none, c, same, a} {
		if err := x.Set(x, k, 10*i); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(a.Free(), x.CopyTo(&y.Attributes, x), y.Clear(y), x.Delete(x, b), x.Delete(x, b),
		x.Clear(x)); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete x a 0", "copy x b 10", "copy x c 30", "copy x a 50", "delete y a 51", "delete y c 31",
		"delete x b 10", "delete x a 50", "delete x c 30",
	}
	if !slices.Equal(log, want) {
		t.Errorf("%q, not %q", log, want)
	}
	if _, ok := x.Get(a); ok {
		t.Error("there is an attribute")
	}
}

// TestErrors checks that an attribute is unchanged if its callback returns an error, and that an invalid key is ErrKey.
func TestErrors(t *testing.T) {
	refused := errors.New("refused")
	k := caching.NewKey(func(*object, *caching.Key[*object], any) (any, bool, error) { return nil, true, refused },
		func(*object, *caching.Key[*object], any) error { return refused })
	x, y := &object{}, &object{}
	if err := x.Set(x, k, 1); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"Set": x.Set(x, k, 2), "Delete": x.Delete(x, k), "Clear": x.Clear(x), "CopyTo": x.CopyTo(&y.Attributes, x),
	} {
		if !errors.Is(err, refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if v, ok := x.Get(k); !ok || v != 1 {
		t.Errorf("the value is %v, %v", v, ok)
	}
	if _, ok := y.Get(k); ok {
		t.Error("the duplicate has an attribute")
	}
	if err := k.Free(); err != nil {
		t.Error(err)
	}
	var none *caching.Key[*object]
	for name, err := range map[string]error{
		"Free": k.Free(), "Free of nil": none.Free(), "Set": x.Set(x, k, 3), "Set of nil": x.Set(x, nil, 3),
		"Delete of nil": x.Delete(x, nil),
	} {
		if !errors.Is(err, caching.ErrKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestReplacedByFunction checks that a callback may change the attributes itself.
func TestReplacedByFunction(t *testing.T) {
	x := &object{}
	var k *caching.Key[*object]
	depth := 0
	k = caching.NewKey(nil, func(o *object, _ *caching.Key[*object], _ any) error {
		if depth++; depth == 1 {
			return o.Set(o, k, 2)
		}
		return nil
	})
	if err := errors.Join(x.Set(x, k, 1), x.Set(x, k, 3)); err != nil {
		t.Fatal(err)
	}
	if v, _ := x.Get(k); v != 3 {
		t.Errorf("the value is %v", v)
	}
}
