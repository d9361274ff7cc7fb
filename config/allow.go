package config

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// AccessList lists users and groups by system name or number. It allows these users and the members of these groups.
// Root and the daemon's user are always allowed.
type AccessList struct {
	Users  []string `yaml:"users,omitempty"`
	Groups []string `yaml:"groups,omitempty"`
}

// validate checks that no name is empty. The daemon checks that the users and groups exist, because this host may not
// be the one on which the daemon runs.
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
