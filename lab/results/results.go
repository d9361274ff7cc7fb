// Package results contains the archived measurements of zrlmpid, one file for each machine and date. It also contains
// the reasons why targets were missed. README.md describes the files.
package results

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

//go:embed 2*.json
var runs embed.FS

//go:embed missed.json
var missedJSON []byte

// Reason explains why a run missed some of the targets.
type Reason struct {
	Targets []string `json:"targets"`
	Why     string   `json:"why"`
}

// Reasons returns the reasons for all missed targets.
func Reasons() []Reason {
	var all []Reason
	if err := json.Unmarshal(missedJSON, &all); err != nil {
		panic(fmt.Sprintf("missed.json: %v", err)) // a test parses the file
	}
	return all
}

// Names returns the names of all archived runs, newest first.
func Names() []string {
	entries, err := runs.ReadDir(".")
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".json"))
	}
	slices.Sort(names)
	slices.Reverse(names)
	return names
}

// Read returns the text of the run with the given name.
func Read(name string) ([]byte, error) { return runs.ReadFile(name + ".json") }

// NotFoundError is returned for a query that matches no machine, or several.
type NotFoundError struct {
	Query string
	// Matches lists the names of all matching runs, if they are from several machines.
	Matches []string
}

func (e *NotFoundError) Error() string {
	if len(e.Matches) == 0 {
		return fmt.Sprintf("no archived run matches %q; \"zrlbench show\" lists all of them", e.Query)
	}
	return fmt.Sprintf("%q matches the runs of several machines: %s", e.Query, strings.Join(e.Matches, ", "))
}

// Find returns the name of the run that a query selects. A query is the name of a run, or the name of a machine or a
// part of it, which selects the newest run on that machine. Queries have the form of run names, as in "amd-epyc".
func Find(query string) (string, error) {
	names := Names()
	if slices.Contains(names, query) {
		return query, nil
	}
	if query == "" {
		return "", &NotFoundError{Query: query}
	}
	// A query may be a machine's whole name, the end of a name (so "model-1" does not match model-17), or any other
	// part of a name.
	for _, matches := range []func(name string) bool{
		func(name string) bool { return machineName(name) == query },
		func(name string) bool { return strings.HasSuffix(name, "-"+query) },
		func(name string) bool { return strings.Contains(name, query) },
	} {
		found := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !matches(name) })
		if len(found) == 0 {
			continue
		}
		if slices.ContainsFunc(found, func(name string) bool { return machineName(name) != machineName(found[0]) }) {
			return "", &NotFoundError{query, found}
		}
		return found[0], nil
	}
	return "", &NotFoundError{Query: query}
}

// machineName returns the name of a run without the date.
func machineName(name string) string { return name[min(len(name), len("2006-01-02-")):] }
