package config

import (
	"bytes"
	"reflect"
	"testing"
)

// FuzzParse checks that no file makes the parser panic, and that every accepted file is unchanged after printing and
// parsing it again.
func FuzzParse(f *testing.F) {
	for _, file := range deployFiles(f) {
		f.Add(file)
	}
	f.Add([]byte(host + "defaults: {pace: {per_datagram: 1.1us}, deadlines: {ack: 0}}\n"))
	f.Add([]byte("ranks:\n  - {rank: 0, address: &a fd00::1, run: standin, kernel: \"exec:/p 'q\", link: *a}\n"))
	f.Add([]byte(host + "defaults: {profile: extended, transport: tcp, eager_limit: 0, eager_credit: 1}\ntls: " +
		"{certificate: a, key: b, authority: c}\nattach: {socket: \"\"}\n"))
	f.Add([]byte("ranks: [{rank: 0, rank: 1, ?: x}]\n---\n<<: !!binary x\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := Parse(bytes.NewReader(file), "fuzz.yaml")
		if err != nil {
			if c != nil || err.Error() == "" {
				t.Fatalf("config %v, error %q", c, err)
			}
			return
		}
		c.Warnings()
		text, err := c.YAML()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(bytes.NewReader(text), "printed.yaml")
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		c.source, again.source = source{}, source{}
		if !reflect.DeepEqual(c, again) {
			t.Fatalf("printed and read again:\n%+v, want\n%+v", again, c)
		}
	})
}
