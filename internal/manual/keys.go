package manual

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Keys returns the page of a configuration as Markdown, made out of a reference
// configuration: a YAML file that has every key, with comments. The comment at its
// head describes the file. Keys that occur more than once, as in lists, are described
// where they have comments.
func Keys(reference []byte) (string, error) {
	var file yaml.Node
	if err := yaml.Unmarshal(reference, &file); err != nil {
		return "", err
	}
	if len(file.Content) != 1 || file.Content[0].Kind != yaml.MappingNode {
		return "", errors.New("the reference is no list of keys")
	}
	top := file.Content[0]
	k := keys{described: make(map[string]bool)}
	k.b.WriteString("# NAME\nzrlmpid.yaml - configuration of zrlmpid\n\n# DESCRIPTION\n")
	k.b.WriteString(comment(file.HeadComment))
	for i := 0; i+1 < len(top.Content); i += 2 {
		fmt.Fprintf(&k.b, "\n# %s\n", strings.ToUpper(top.Content[i].Value))
		k.pair("", top.Content[i], top.Content[i+1])
	}
	k.b.WriteString("\n# SEE ALSO\n**zrlmpid**(8), **zrlctl**(1)\n")
	return k.b.String(), nil
}

// keys collects the keys that were described, each by its path.
type keys struct {
	b         strings.Builder
	described map[string]bool
}

// node describes all that is below a key.
func (k *keys) node(path string, n *yaml.Node) {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			k.pair(path, n.Content[i], n.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.HeadComment != "" {
				k.b.WriteString(comment(item.HeadComment) + "\n")
			}
			k.node(path+"[]", item)
		}
	}
}

// pair describes a key and what is below it.
func (k *keys) pair(path string, key, value *yaml.Node) {
	if path != "" {
		path += "."
	}
	path += key.Value
	text := join(key.HeadComment, key.LineComment, value.HeadComment, value.LineComment)
	if text != "" || !k.described[path] && value.Kind == yaml.ScalarNode {
		term := "**" + Escape(path) + "**"
		if value.Kind == yaml.ScalarNode {
			shown := value.Value
			if shown == "" {
				shown = `""`
			}
			term += " = *" + Escape(shown) + "*"
		}
		fmt.Fprintf(&k.b, "%s\n: %s\n", term, indent(comment(text)))
	}
	k.described[path] = true
	k.node(path, value)
}

func join(comments ...string) string {
	return strings.Join(slices.DeleteFunc(comments, func(c string) bool { return c == "" }), "\n")
}

// comment returns a comment as Markdown, without its marks.
func comment(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimPrefix(strings.TrimRight(line, "\n"), "#")
		b.WriteString(strings.TrimPrefix(line, " ") + "\n")
	}
	return Help(strings.TrimRight(b.String(), "\n"))
}

// indent has text belong to the term of a list above it.
func indent(text string) string {
	return strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n    ") + "\n"
}
