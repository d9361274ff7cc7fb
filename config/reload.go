package config

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Change is a key whose value differs between two configurations.
type Change struct {
	// Rank is the rank whose entry contains the key, or NoRank.
	Rank int
	// Key is the path of the key, such as "log.level", or "link.pace.per_datagram" in the entry of a rank.
	Key string
	// From and To are the old and the new value, empty if the key is not set.
	From, To string
}

// NoRank is the Rank of a Change whose key is outside of all rank entries.
const NoRank = -1

// String returns the change in one line.
func (c Change) String() string {
	key := c.Key
	if c.Rank != NoRank {
		key = fmt.Sprintf("rank %d: %s", c.Rank, c.Key)
	}
	return fmt.Sprintf("%s: %s -> %s", key, orUnset(c.From), orUnset(c.To))
}

func orUnset(value string) string {
	if value == "" {
		return "not set"
	}
	return value
}

// Diff lists the differences between two valid configurations, including defaults. Ranks are compared by number, not by
// file order. If the numbers of ranks differ, it reports both numbers.
func Diff(from, to *Config) ([]Change, error) {
	old, err := from.yamlValues()
	if err != nil {
		return nil, err
	}
	now, err := to.yamlValues()
	if err != nil {
		return nil, err
	}
	var changes []Change
	if len(from.Ranks) != len(to.Ranks) {
		changes = append(changes, Change{NoRank, "ranks", strconv.Itoa(len(from.Ranks)), strconv.Itoa(len(to.Ranks))})
	}
	both := min(len(from.Ranks), len(to.Ranks))
	note := func(path keyPath) {
		switch {
		case old[path] == now[path] || path.rank >= both:
		case path.rank != NoRank && path.key == "kernel":
			changes = append(changes, kernelChange(from.Rank(path.rank), to.Rank(path.rank)))
		default:
			changes = append(changes, Change{path.rank, path.key, old[path], now[path]})
		}
	}
	for l := range old {
		note(l)
	}
	for l := range now {
		if _, had := old[l]; !had {
			note(l)
		}
	}
	slices.SortFunc(changes,
		func(a, b Change) int { return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Key, b.Key)) })
	return changes, nil
}

// kernelChange returns the change of a rank's kernel, without the arguments of programs, which may be secret.
func kernelChange(from, to *Rank) Change {
	c := Change{from.Rank, "kernel", from.Kernel.String(), to.Kernel.String()}
	if c.From == c.To {
		c.To += " with other arguments"
	}
	return c
}

// keyPath identifies a key whose value is not a section.
type keyPath struct {
	rank int
	key  string
}

// yamlValues returns all values of the configuration in YAML form.
func (c *Config) yamlValues() (map[keyPath]string, error) {
	text, err := c.YAML()
	if err != nil {
		return nil, err
	}
	var root map[string]any
	if err := yaml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("configuration: %w", err)
	}
	ranks, _ := root["ranks"].([]any)
	delete(root, "ranks")
	all := make(map[keyPath]string)
	collectValues(all, keyPath{rank: NoRank}, root)
	for i, r := range ranks {
		collectValues(all, keyPath{rank: c.Ranks[i].Rank}, r)
	}
	// These keys need their effective values, because their defaults depend on the environment or on another key.
	all[keyPath{NoRank, "control.socket"}] = c.ControlSocket()
	all[keyPath{NoRank, "attach.socket"}] = c.AttachSocket()
	all[keyPath{NoRank, "record.spool.directory"}] = c.SpoolDirectory()
	return all, nil
}

// collectValues stores all values below a section, with keys such as record.spool.size.
func collectValues(into map[keyPath]string, at keyPath, value any) {
	section, ok := value.(map[string]any)
	if !ok {
		into[at] = fmt.Sprint(value)
		return
	}
	for key, v := range section {
		below := at
		if below.key != "" {
			below.key += "."
		}
		below.key += key
		collectValues(into, below, v)
	}
}
