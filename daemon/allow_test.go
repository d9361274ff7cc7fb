package daemon

import (
	"errors"
	"os"
	"os/user"
	"reflect"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/config"
	"github.com/zrlmpi/zrlmpid/daemon/attach"
)

// TestAccess checks that a rank is accessible to its own users and groups or, if it has none, to the group that
// may write to the sockets.
func TestAccess(t *testing.T) {
	const self = 77
	group := attach.Access{GIDs: []int{self}}
	root, err := user.LookupGroupId("0")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name, control, rank string
		want                attach.Access
		others              *attach.Access // of the control socket
		mode                os.FileMode
	}{
		{"default", "", "", group, nil, 0o660},
		{"group writes", "mode: 0620", "", group, nil, 0o620},
		{"everyone writes", "mode: 0666", "", group, nil, 0o666},
		{"group reads", "mode: 0640", "", attach.Access{}, nil, 0o640},
		{"group has nothing", "mode: 0600", "", attach.Access{}, nil, 0o600},
		{"only others write", "mode: 0602", "", attach.Access{}, nil, 0o602},
		{"numbers", "", "allow: {users: [\"1001\", 1002], groups: [4294967294]}",
			attach.Access{UIDs: []int{1001, 1002}, GIDs: []int{4294967294}}, nil, 0o666},
		{"names", "mode: 0600", "allow: {users: [root], groups: [" + root.Name + "]}",
			attach.Access{UIDs: []int{0}, GIDs: []int{0}}, nil, 0o666},
		{"nobody", "mode: 0600", "allow: {}", attach.Access{}, nil, 0o666},
		{"control socket", "mode: 0660, allow: {users: [7]}", "", group, &attach.Access{UIDs: []int{7}}, 0o660},
	} {
		text := "ranks: [{rank: 0, address: 127.0.0.1, run: host, " + tt.rank + "}]\ncontrol: {" + tt.control + "}\n"
		cfg := mustParse(t, text)
		a, err := newAccess(cfg, self)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if got := a.ranks[0]; !reflect.DeepEqual(got, tt.want) || !reflect.DeepEqual(a.control, tt.others) {
			t.Errorf("%s: %+v, control %+v", tt.name, got, a.control)
		}
		if got := attachMode(cfg); got != tt.mode {
			t.Errorf("%s: mode %o, want %o", tt.name, got, tt.mode)
		}
	}
}

func TestUnknownUsers(t *testing.T) {
	_, err := New(mustParse(t, "control: {allow: {users: [no-such-user]}}\nranks: [{rank: 0, address: 127.0.0.1, "+
		"run: host, allow: {users: [no-such-user, root], groups: [no-such-group]}}]\n"), Options{})
	if wrong, ok := errors.AsType[*config.Error](err); !ok || wrong.Key != "ranks[0].allow.users[0]" {
		t.Error(err)
	}
	want := "test.yaml:2: ranks[0].allow.users[0]: user: unknown user no-such-user: create it, or give its number if " +
		"only a directory service knows it\n" +
		"test.yaml:2: ranks[0].allow.groups[0]: group: unknown group no-such-group: create it, or give its number if " +
		"only a directory service knows it\n" +
		"test.yaml:1: control.allow.users[0]: user: unknown user no-such-user: create it, or give its number if only a directory service knows it"
	if got := err.Error(); !strings.Contains(got, want) {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
