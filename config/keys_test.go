package config

import (
	"encoding"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/zrlmpi/zrlmpid/internal/strictyaml"
)

// maxKeys is the maximum number of keys with a value in the schema. Every new key has to be explained, tested and
// maintained.
const maxKeys = 65

// schemaKeys returns the keys of the schema that have a value, such as "log.level", and the number of their places. The
// prefix "ranks" is omitted, and so is "link" or "defaults" from the options of a link, which are the same in both
// sections.
func schemaKeys() (keys []string, places int) {
	isScalar := reflect.TypeFor[encoding.TextUnmarshaler]()
	var walk func(section reflect.Type, path string)
	walk = func(section reflect.Type, path string) {
		for section.Kind() == reflect.Pointer || section.Kind() == reflect.Slice {
			section = section.Elem()
		}
		if section.Kind() != reflect.Struct || reflect.PointerTo(section).Implements(isScalar) {
			places++
			if !slices.Contains(keys, path) {
				keys = append(keys, path)
			}
			return
		}
		names, index := strictyaml.Fields(section)
		for i, name := range names {
			walk(section.Field(index[i]).Type, join(path, name))
		}
	}
	walk(reflect.TypeFor[Config](), "")
	return keys, places
}

// join returns the name of a key in a section.
func join(section, key string) string {
	switch {
	case section == "" && (key == "ranks" || key == "defaults"), section == "" && key == "link":
		return ""
	case section == "":
		return key
	}
	return section + "." + key
}

// keysOf returns the set of keys with a value in a file.
func keysOf(t *testing.T, text []byte) map[string]bool {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	keys := make(map[string]bool)
	var walk func(n *yaml.Node, path string)
	walk = func(n *yaml.Node, path string) {
		switch {
		case n.Kind == yaml.MappingNode:
			for i := 0; i+1 < len(n.Content); i += 2 {
				walk(n.Content[i+1], join(path, n.Content[i].Value))
			}
		case n.Kind == yaml.SequenceNode && path == "": // ranks
			for _, item := range n.Content {
				walk(item, path)
			}
		default:
			keys[path] = true
		}
	}
	walk(doc.Content[0], "")
	return keys
}

func TestNumberOfKeys(t *testing.T) {
	keys, places := schemaKeys()
	t.Logf("%d keys in %d places: %s", len(keys), places, strings.Join(keys, " "))
	if len(keys) > maxKeys {
		t.Errorf("the schema has %d keys, more than %d", len(keys), maxKeys)
	}
	if len(keys) < 40 {
		t.Errorf("the schema has %d keys, too few to have been walked in full", len(keys))
	}
}

// TestReferenceShowsEveryKey checks that the reference file and the schema have the same keys.
func TestReferenceShowsEveryKey(t *testing.T) {
	shown := keysOf(t, deployFiles(t)["zrlmpid.reference.yaml"])
	keys, _ := schemaKeys()
	for _, key := range keys {
		if !shown[key] {
			t.Errorf("the reference file does not show %s", key)
		}
	}
}

// reasonRow matches a row of the table in docs/operations.md: one or more keys, and why an operator would change them.
var reasonRow = regexp.MustCompile("(?m)^\\| (`[a-z_.]+`(?:, `[a-z_.]+`)*) \\| .*\\| [A-Z].{20,} \\|$")

// TestEveryKeyHasAUse checks that every key is in a shipped example other than the reference file, or that
// docs/operations.md says why an operator would change it. That page must not name keys that do not exist.
func TestEveryKeyHasAUse(t *testing.T) {
	used := make(map[string]bool)
	for name, text := range deployFiles(t) {
		if name == "zrlmpid.reference.yaml" {
			continue
		}
		for key := range keysOf(t, text) {
			used[key] = true
		}
	}
	page, err := os.ReadFile(filepath.Join("..", "docs", "operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	keys, _ := schemaKeys()
	for _, row := range reasonRow.FindAllStringSubmatch(string(page), -1) {
		for cell := range strings.SplitSeq(row[1], ", ") {
			key := strings.Trim(cell, "`")
			if !slices.Contains(keys, key) {
				t.Errorf("docs/operations.md gives a reason to change %s, which is no key", key)
			}
			used[key] = true
		}
	}
	for _, key := range keys {
		if !used[key] {
			t.Errorf("%s is in no shipped example, and docs/operations.md gives no reason to change it", key)
		}
	}
}
