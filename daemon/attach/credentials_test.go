package attach

import (
	"io/fs"
	"testing"

	"github.com/zrlmpi/zrlmpid/mpe/attach/wire"
)

func TestAccess(t *testing.T) {
	const self = 1000
	a := Access{UIDs: []int{5}, GIDs: []int{77, 78}}
	for _, tt := range []struct {
		who  wire.Credentials
		may  bool
		none bool // allowed even without Access
	}{
		{wire.Credentials{UID: self, GID: 9}, true, true},
		{wire.Credentials{UID: 0, GID: 0}, true, true},
		{wire.Credentials{UID: 5, GID: 9}, true, false},
		{wire.Credentials{UID: 6, GID: 77}, true, false},
		{wire.Credentials{UID: 6, GID: 9, Groups: []int{1, 78}}, true, false},
		{wire.Credentials{UID: 6, GID: 9, Groups: []int{1, 5, self}}, false, false},
		{wire.Credentials{UID: 77, GID: self}, false, false},
	} {
		if got := a.Allows(tt.who, self); got != tt.may {
			t.Errorf("%+v: %v", tt.who, got)
		}
		if got := (Access{}).Allows(tt.who, self); got != tt.none {
			t.Errorf("%+v without access: %v", tt.who, got)
		}
	}
	if e := wire.NewRefusal(wire.Permission, "x"); !e.Is(fs.ErrPermission) {
		t.Error(e)
	}
}
