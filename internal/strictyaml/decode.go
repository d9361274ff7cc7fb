package strictyaml

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// MaxFileSize is the maximum size of a file in bytes.
const MaxFileSize = 1 << 20

// ErrTooLarge is returned for a file of more than MaxFileSize bytes.
var ErrTooLarge = fmt.Errorf("the file is larger than %d bytes", MaxFileSize)

// Defaulter is implemented by values that have defaults. SetDefaults is called before the value is read from the file.
type Defaulter interface{ SetDefaults() }

// Decode decodes a file into a struct, whose fields have yaml tags with the keys. Fields that do not occur in the file
// keep their values. Values behind pointers and in lists are new, and start with their defaults if they are Defaulters.
// Errors use name as the name of the file. The error joins *Error values, or wraps ErrTooLarge or the reader's error.
func Decode(r io.Reader, name string, into any) (Source, error) {
	text, err := Read(r, name)
	if err != nil {
		return Source{}, err
	}
	root, err := document(text, name)
	if err != nil {
		return Source{}, err
	}
	source := Source{File: name, lines: make(map[string]int)}
	d := decoder{Problems{source: &source}}
	source.lines[""] = 1
	if root != nil {
		source.lines[""] = root.Line
		d.decodeValue(root, reflect.ValueOf(into).Elem(), "")
	}
	return source, d.Err()
}

// Read reads a file of at most MaxFileSize bytes.
func Read(r io.Reader, name string) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxFileSize+1))
	if err == nil && len(text) > MaxFileSize {
		err = ErrTooLarge
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return text, nil
}

// document returns the root of the only document in text, or nil if there is no document.
func document(text []byte, name string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	var doc, next yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(name, text, err)
	}
	switch err := dec.Decode(&next); {
	case err == nil:
		return nil, &Error{File: name, Line: next.Line,
			Problem: "a second document starts here: the file is one document, so remove the --- or what follows it"}
	case !errors.Is(err, io.EOF):
		return nil, syntaxError(name, text, err)
	}
	return doc.Content[0], nil
}

// decoder sets the fields of a struct from YAML nodes. The library's strict decoder is not used: it reports Go type
// names instead of key paths, accepts 1.5 as an integer, and needs quadratic time to find duplicate keys.
type decoder struct{ Problems }

var durationType = reflect.TypeFor[time.Duration]()

// decodeValue decodes n into v. Parts of v that do not occur in the file keep their values.
func (d *decoder) decodeValue(n *yaml.Node, v reflect.Value, key string) {
	if n.Kind == yaml.AliasNode {
		d.addAt(n.Line, key, "*%s is an alias, which is not supported: write the value out", Shorten(n.Value))
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
				d.addAt(n.Line, key, "%s", shorten(err.Error(), maxMessage))
			}
		}
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		if !null && d.isKind(n, yaml.MappingNode, "keys with values", key) {
			d.decodeMapping(n, v, key)
		}
	case reflect.Slice:
		if !null && d.isKind(n, yaml.SequenceNode, "a list", key) {
			d.decodeSequence(n, v, key)
		}
	default:
		d.decodeScalar(n, null, v, key)
	}
}

// decodeMapping decodes a mapping into a struct. It continues after unknown and duplicate keys, to report all problems
// at once.
func (d *decoder) decodeMapping(n *yaml.Node, v reflect.Value, key string) {
	fields, index := Fields(v.Type())
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
				Quote(name.Value), SuggestName(name.Value, fields), strings.Join(fields, ", "))
			continue
		}
		path := name.Value
		if key != "" {
			path = key + "." + path
		}
		if first := seen[at]; first > 0 {
			d.addAt(name.Line, path, "duplicate key, first on line %d: remove one of them", first)
			continue
		}
		seen[at] = name.Line
		d.source.lines[path] = name.Line
		d.decodeValue(value, v.Field(index[at]), path)
	}
}

// decodeSequence decodes a sequence. An empty entry is reported, because it is more likely an omission than a zero
// value.
func (d *decoder) decodeSequence(n *yaml.Node, v reflect.Value, key string) {
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		path := fmt.Sprintf("%s[%d]", key, i)
		d.source.lines[path] = item.Line
		if item.Kind == yaml.ScalarNode && item.ShortTag() == "!!null" {
			d.addAt(item.Line, path, "empty: fill in the entry or remove it")
			continue
		}
		setDefaults(v.Index(i))
		d.decodeValue(item, v.Index(i), path)
	}
}

func setDefaults(v reflect.Value) {
	if def, ok := v.Addr().Interface().(Defaulter); ok {
		def.SetDefaults()
	}
}

func (d *decoder) decodeScalar(n *yaml.Node, null bool, v reflect.Value, key string) {
	want := map[reflect.Kind]string{
		reflect.Bool: "true or false", reflect.Int: "a whole number", reflect.String: "one value",
		reflect.Int64:   "a time",
		reflect.Float64: "a number",
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
	case v.Kind() == reflect.Float64:
		var f float64
		if f, err = strconv.ParseFloat(n.Value, 64); err == nil && !math.IsInf(f, 0) && !math.IsNaN(f) &&
			n.ShortTag() != "!!str" {
			v.SetFloat(f)
			return
		}
	default:
		// This is reached only if a field of an unsupported kind is added to a configuration struct.
		panic("strictyaml: no decoding for " + v.Type().String())
	}
	d.addAt(n.Line, key, "%s is not %s", Quote(n.Value), want)
}

// isScalar reports whether n is a value of one of YAML's built-in types, and adds a problem if it is not.
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
		d.addAt(n.Line, key, "the tag %s is not supported: remove it", Quote(tag))
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

// Fields returns the keys of a section, and the field index of each.
func Fields(section reflect.Type) (names []string, index []int) {
	for i := range section.NumField() {
		name, _, _ := strings.Cut(section.Field(i).Tag.Get("yaml"), ",")
		if name != "" {
			names, index = append(names, name), append(index, i)
		}
	}
	return names, index
}
