package nft

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// Ruleset is the rules of a host.
type Ruleset struct {
	// base are the chains with a hook, in the order in which packets meet them; chains are all.
	base   []*chain
	chains map[chainKey]*chain
	sets   map[chainKey][]json.RawMessage
}

type chainKey struct{ family, table, name string }

func (k chainKey) String() string { return k.family + " " + k.table + " " + k.name }

type chain struct {
	chainKey
	hook   string
	prio   int
	policy string
	rules  []rule
}

type rule struct {
	handle     int
	statements []map[string]json.RawMessage
}

// object is an object of the list that nft prints; one of the fields is set.
type object struct {
	Chain *struct {
		Family, Table, Name, Hook, Policy string
		Prio                              int
	}
	Rule *struct {
		Family, Table, Chain string
		Handle               int
		Expr                 []map[string]json.RawMessage
	}
	Set, Map *struct {
		Family, Table, Name string
		Elem                []json.RawMessage
	}
}

// Parse reads what "nft -j list ruleset" prints.
func Parse(text []byte) (*Ruleset, error) {
	var list struct{ Nftables []object }
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("the output of nft cannot be read: %w", err)
	}
	if list.Nftables == nil {
		return nil, errors.New("the output of nft cannot be read: it has no list nftables")
	}
	s := &Ruleset{chains: make(map[chainKey]*chain), sets: make(map[chainKey][]json.RawMessage)}
	for _, o := range list.Nftables {
		if c := o.Chain; c != nil {
			made := &chain{chainKey{c.Family, c.Table, c.Name}, c.Hook, c.Prio, c.Policy, nil}
			s.chains[made.chainKey] = made
			if c.Hook != "" {
				s.base = append(s.base, made)
			}
		}
		if e := cmp.Or(o.Set, o.Map); e != nil {
			s.sets[chainKey{e.Family, e.Table, e.Name}] = e.Elem
		}
	}
	for _, o := range list.Nftables {
		if r := o.Rule; r != nil {
			if c := s.chains[chainKey{r.Family, r.Table, r.Chain}]; c != nil {
				c.rules = append(c.rules, rule{r.Handle, r.Expr})
			}
		}
	}
	slices.SortStableFunc(s.base, func(a, b *chain) int {
		return cmp.Or(cmp.Compare(order[a.hook], order[b.hook]), cmp.Compare(a.prio, b.prio))
	})
	return s, nil
}

// order is that of the hooks that a packet meets.
var order = map[string]int{"prerouting": 0, "input": 1, "output": 1, "postrouting": 2}

// Chains returns the number of chains that packets meet.
func (s *Ruleset) Chains() int { return len(s.base) }
