package control

import (
	"errors"
	"reflect"
	"testing"
)

func TestReload(t *testing.T) {
	b := new(fakeBackend)
	c := fakeServer(t, b)
	got, err := c.Reload(t.Context())
	if err != nil || !reflect.DeepEqual(got, reloaded) {
		t.Errorf("%+v, %v, want %+v", got, err, reloaded)
	}
	b.refuses = true
	_, err = c.Reload(t.Context())
	refused, ok := errors.AsType[*Error](err)
	if !ok || refused.Kind != Refused || !reflect.DeepEqual(refused.Restart, []string{"a: 1 -> 2"}) {
		t.Errorf("%+v", err)
	}
}
