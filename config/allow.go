package config

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// AccessList lists local users, and groups whose members are allowed. Each is a system name or number. Root and the
// daemon's user are always allowed.
type AccessList struct {
	Users  []string `yaml:"users,omitempty"`
	Groups []string `yaml:"groups,omitempty"`
}

// validate checks that no name is empty. The daemon checks that the users and groups exist, because a configuration may
// be validated on another host.
func (a *AccessList) validate(problems *strictyaml.Problems, key string) {
	if a == nil {
		return
	}
	check := func(key string, names []string) {
		for i, name := range names {
			if name == "" {
				problems.Add(fmt.Sprintf("%s[%d]", key, i), "empty: give a name or a number, or remove the entry")
			}
		}
	}
	check(key+".users", a.Users)
	check(key+".groups", a.Groups)
}
