package cluster

import (
	"encoding/json"
	"reflect"
)

// jsonTypeName returns the name of the JSON type that the key requires.
func jsonTypeName(e *json.UnmarshalTypeError) string {
	if e.Type == reflect.TypeFor[json.Number]() {
		return "a number"
	}
	switch e.Type.Kind() {
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Slice:
		return "a list"
	case reflect.String:
		return "a string"
	}
	return "a whole number"
}

// stringOrNumber returns the contents of a JSON string, the text of a JSON number, or "" for anything else. Identifiers
// may be strings or numbers.
func stringOrNumber(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var n json.Number
	if json.Unmarshal(raw, &n) == nil {
		return n.String()
	}
	return ""
}
