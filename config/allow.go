package config

import (
	"fmt"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// Allow are local users, and groups whose members are meant. Each is a name or a number of
// the system. Root and the user that the daemon runs as need not be among them.
type Allow struct {
	Users  []string `yaml:"users,omitempty"`
	Groups []string `yaml:"groups,omitempty"`
}

// validate checks that no name is empty. Whether the users and groups exist is the daemon's
// to find out: a configuration may be checked on another host.
func (a *Allow) validate(p *strictyaml.Problems, key string) {
	if a == nil {
		return
	}
	check := func(key string, names []string) {
		for i, name := range names {
			if name == "" {
				p.Add(fmt.Sprintf("%s[%d]", key, i), "empty: give a name or a number, or remove the entry")
			}
		}
	}
	check(key+".users", a.Users)
	check(key+".groups", a.Groups)
}
