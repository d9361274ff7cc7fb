package attach

import (
	"io/fs"
	"strings"
	"testing"
)

func TestAccess(t *testing.T) {
	const self = 1000
	a := Access{UIDs: []int{5}, GIDs: []int{77, 78}}
	for _, tt := range []struct {
		who  Credentials
		may  bool
		none bool // without Access, too
	}{
		{Credentials{UID: self, GID: 9}, true, true},
		{Credentials{UID: 0, GID: 0}, true, true},
		{Credentials{UID: 5, GID: 9}, true, false},
		{Credentials{UID: 6, GID: 77}, true, false},
		{Credentials{UID: 6, GID: 9, Groups: []int{1, 78}}, true, false},
		{Credentials{UID: 6, GID: 9, Groups: []int{1, 5, self}}, false, false},
		{Credentials{UID: 77, GID: self}, false, false},
	} {
		if err := a.check(tt.who, self); (err == nil) != tt.may {
			t.Errorf("%+v: %v", tt.who, err)
		}
		err := (Access{}).check(tt.who, self)
		if (err == nil) != tt.none {
			t.Errorf("%+v without access: %v", tt.who, err)
		}
		if err != nil && !strings.Contains(err.Error(), "the daemon runs as user 1000") {
			t.Error(err)
		}
	}
	if e := refused(Permission, "x"); !e.Is(fs.ErrPermission) {
		t.Error(e)
	}
}
