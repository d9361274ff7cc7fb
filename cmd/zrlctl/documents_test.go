package main

import (
	"encoding"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/zrlmpi/zrlmpid/capture"
	"github.com/zrlmpi/zrlmpid/daemon/control"
	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/diagnosis/doctor"
	"github.com/zrlmpi/zrlmpid/mpe/state"
)

var updateDocuments = flag.Bool("update-documents", false, "write testdata/documents")

// TestDocuments: in JSON documents that scripts read, the keys and the kinds of their values are unchanged.
// -update-documents updates the expected ones.
func TestDocuments(t *testing.T) {
	for name, document := range map[string]any{
		"status":   digest.Document{},
		"control":  state.Status{},
		"top":      topJSON{},
		"why":      diagnosis.Diagnosis{},
		"reports":  state.Reports{},
		"ranks":    rankRow{},
		"analysis": capture.Report{},
		"event":    (*capture.Event).JSON(&capture.Event{}),
		"doctor":   doctor.Report{},
		"message":  control.Message{},
	} {
		s := shape{}
		s.add("", reflect.TypeOf(document), nil)
		slices.Sort(s.lines)
		text := strings.Join(slices.Compact(s.lines), "\n") + "\n"
		file := filepath.Join("testdata", "documents", name+".txt")
		if *updateDocuments {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if string(want) != text {
			t.Errorf("%s differs from the document:\n%s", file, difference(string(want), text))
		}
	}
}

// difference returns the lines that are in only one of the two texts.
func difference(before, after string) string {
	var b strings.Builder
	lines := func(in, other, mark string) {
		has := strings.Split(other, "\n")
		for _, line := range strings.Split(in, "\n") {
			if !slices.Contains(has, line) {
				fmt.Fprintf(&b, "%s %s\n", mark, line)
			}
		}
	}
	lines(before, after, "-")
	lines(after, before, "+")
	return b.String()
}

// shape describes a document by lines of the form "path kind". A key that may be omitted ends with a question mark.
type shape struct{ lines []string }

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// add adds the lines for a value of type typ. within lists the types that contain it.
func (s *shape) add(path string, typ reflect.Type, within []reflect.Type) {
	switch {
	case slices.Contains(within, typ):
		s.lines = append(s.lines, path+" as above")
		return
	case typ.Implements(textMarshaler) || reflect.PointerTo(typ).Implements(textMarshaler):
		s.lines = append(s.lines, path+" string")
		return
	case typ.Implements(marshaler) || reflect.PointerTo(typ).Implements(marshaler):
		s.addOwn(path, typ)
		return
	}
	switch typ.Kind() {
	case reflect.Pointer:
		s.add(path, typ.Elem(), within)
	case reflect.Slice, reflect.Array:
		if typ.Elem().Kind() == reflect.Uint8 && typ.Kind() == reflect.Slice {
			s.lines = append(s.lines, path+" base64")
			return
		}
		s.add(path+"[]", typ.Elem(), within)
	case reflect.Map:
		s.add(path+"{}", typ.Elem(), within)
	case reflect.Struct:
		s.addFields(path, typ, append(slices.Clone(within), typ))
	case reflect.Bool:
		s.lines = append(s.lines, path+" bool")
	case reflect.String:
		s.lines = append(s.lines, path+" string")
	case reflect.Interface:
		s.lines = append(s.lines, path+" any")
	default:
		s.lines = append(s.lines, path+" number")
	}
}

func (s *shape) addFields(path string, typ reflect.Type, within []reflect.Type) {
	for i := range typ.NumField() {
		f := typ.Field(i)
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && name == "":
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			if of.Kind() == reflect.Struct && !of.Implements(marshaler) && !of.Implements(textMarshaler) {
				s.addFields(path, of, within)
				continue
			}
			name = f.Name
		case name == "":
			name = f.Name
		}
		if strings.Contains(options, "omit") {
			name += "?"
		}
		s.add(path+"."+name, f.Type, within)
	}
}

// addOwn adds the lines for a value whose type has its own JSON encoding. It encodes a value in which all numbers are
// 1.
func (s *shape) addOwn(path string, typ reflect.Type) {
	v := reflect.New(typ)
	fill(v.Elem())
	text, err := json.Marshal(v.Interface())
	var value any
	if err == nil {
		err = json.Unmarshal(text, &value)
	}
	if err != nil {
		s.lines = append(s.lines, path+" "+err.Error())
		return
	}
	s.addValue(path, value)
}

func (s *shape) addValue(path string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for key, of := range value {
			s.addValue(path+"."+key, of)
		}
	case []any:
		for _, of := range value {
			s.addValue(path+"[]", of)
		}
	case string:
		s.lines = append(s.lines, path+" string")
	case bool:
		s.lines = append(s.lines, path+" bool")
	default:
		s.lines = append(s.lines, path+" number")
	}
}

// fill sets all numbers in a value to 1.
func fill(v reflect.Value) {
	switch {
	case !v.CanSet():
	case v.CanInt():
		v.SetInt(1)
	case v.CanUint():
		v.SetUint(1)
	case v.CanFloat():
		v.SetFloat(1)
	case v.Kind() == reflect.Array:
		for i := range v.Len() {
			fill(v.Index(i))
		}
	case v.Kind() == reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	}
}
