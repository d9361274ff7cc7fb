package config

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// decoder fills in a Config from YAML nodes. The library's own strict decoder
// reports Go type names instead of key paths, takes 1.5 for an integer, and
// needs quadratic time to find duplicate keys.
type decoder struct{ problems }

// defaulter is a value that has defaults before the file is read.
type defaulter interface{ setDefaults() }

var durationType = reflect.TypeFor[time.Duration]()

// value decodes n into v, which stays as it is where the file says nothing.
func (d *decoder) value(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind == yaml.AliasNode {
		d.addAt(n.Line, key, "*%s is an alias, which is not supported: write the value out, or use defaults", cut(n.Value, maxQuoted))
		return
	}
	null := n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
	if v.Kind() == reflect.Pointer {
		if null && v.Type().Elem().Kind() == reflect.Struct {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		v = v.Elem()
		setDefaults(v)
	}
	if text, ok := v.Addr().Interface().(encoding.TextUnmarshaler); ok {
		if d.isScalar(n, null, "one value", key) {
			if err := text.UnmarshalText([]byte(n.Value)); err != nil {
				d.addAt(n.Line, key, "%s", cut(err.Error(), maxMessage))
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if !null && d.isKind(n, yaml.MappingNode, "keys with values", key) {
			d.mapping(n, v, key)
		}
	case reflect.Slice:
		if !null && d.isKind(n, yaml.SequenceNode, "a list", key) {
			d.sequence(n, v, key)
		}
	default:
		d.scalar(n, null, v, key)
	}
}

func (d *decoder) mapping(n *yaml.Node, v reflect.Value, key string) {
	fields, index := fieldsOf(v.Type())
	seen := make([]int, len(fields))
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, value := n.Content[i], n.Content[i+1]
		if name.Kind != yaml.ScalarNode {
			d.addAt(name.Line, key, "a key must be a name")
			continue
		}
		at := slices.Index(fields, name.Value)
		if at < 0 {
			d.addAt(name.Line, key, "unknown key %s%s: the keys here are %s",
				quote(name.Value), didYouMean(name.Value, fields), strings.Join(fields, ", "))
			continue
		}
		path := name.Value
		if key != "" {
			path = key + "." + path
		}
		if first := seen[at]; first > 0 {
			d.addAt(name.Line, path, "given twice, first on line %d: keep one of them", first)
			continue
		}
		seen[at] = name.Line
		d.source.lines[path] = name.Line
		d.value(value, v.Field(index[at]), path)
	}
}

func (d *decoder) sequence(n *yaml.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.source.lines[path] = item.Line
		if item.Kind == yaml.ScalarNode && item.ShortTag() == "!!null" {
			d.addAt(item.Line, path, "empty: fill in the entry or remove it")
			continue
		}
		setDefaults(v.Index(i))
		d.value(item, v.Index(i), path)
	}
}

func setDefaults(v reflect.Value) {
	if def, ok := v.Addr().Interface().(defaulter); ok {
		def.setDefaults()
	}
}

func (d *decoder) scalar(n *yaml.Node, null bool, v reflect.Value, key string) {
	want := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.String: "one value", reflect.Int64: "a time",
	}[v.Kind()]
	if !d.isScalar(n, null, want, key) {
		return
	}
	var err error
	switch {
	case v.Type() == durationType:
		var t time.Duration
		if t, err = time.ParseDuration(n.Value); err == nil {
			v.SetInt(int64(t))
			return
		}
		want = "a time with its unit, as in 100ms, 1.1us or 10s"
	case v.Kind() == reflect.String:
		v.SetString(n.Value)
		return
	case v.Kind() == reflect.Bool:
		if n.ShortTag() == "!!bool" && n.Decode(v.Addr().Interface()) == nil {
			return
		}
	case v.Kind() == reflect.Int:
		var i int64
		if i, err = strconv.ParseInt(n.Value, 0, strconv.IntSize); err == nil && n.ShortTag() == "!!int" {
			v.SetInt(i)
			return
		}
	default:
		// A field of a new kind was added to Config without a case here.
		panic("config: no decoding for " + v.Type().String())
	}
	d.addAt(n.Line, key, "%s is not %s", quote(n.Value), want)
}

// isScalar reports whether n is a value of one of YAML's own types, and adds a
// problem if it is not.
func (d *decoder) isScalar(n *yaml.Node, null bool, want, key string) bool {
	if null {
		d.addAt(n.Line, key, "has no value: give it one, or remove the key")
		return false
	}
	if !d.isKind(n, yaml.ScalarNode, want, key) {
		return false
	}
	switch tag := n.ShortTag(); tag {
	case "!!str", "!!int", "!!float", "!!bool", "!!timestamp":
		return true
	default:
		d.addAt(n.Line, key, "the tag %s is not supported: remove it", quote(tag))
		return false
	}
}

var kindNames = map[yaml.Kind]string{
	yaml.MappingNode: "keys with values", yaml.SequenceNode: "a list", yaml.ScalarNode: "one value",
}

func (d *decoder) isKind(n *yaml.Node, kind yaml.Kind, want, key string) bool {
	if n.Kind == kind {
		return true
	}
	d.addAt(n.Line, key, "want %s here, not %s", want, kindNames[n.Kind])
	return false
}

// fieldsOf returns the keys of a section, and the field number of each.
func fieldsOf(section reflect.Type) (names []string, index []int) {
	for i := range section.NumField() {
		name, _, _ := strings.Cut(section.Field(i).Tag.Get("yaml"), ",")
		if name != "" {
			names, index = append(names, name), append(index, i)
		}
	}
	return names, index
}
