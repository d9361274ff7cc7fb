package config

import (
	"strings"
	"testing"
)

// TestSyntaxErrors checks that common mistakes are reported with their line and a remedy.
func TestSyntaxErrors(t *testing.T) {
	const tail = "\nlog: {level: info}\n"
	for _, tt := range []struct{ name, file, want string }{
		// Brackets.
		{"brace at the end", "log: {level: info}\nranks:\n  - {rank: 0, address: 127.0.0.1, run: host\n",
			"3: not valid YAML: the { is not closed: close it with }"},
		{"brace of an entry", "ranks:\n  - {rank: 0, address: 127.0.0.1, run: host\n  - {rank: 1, address: " +
			"127.0.0.2, run: standin}\n", "2: not valid YAML: the { is not closed: close it with }"},
		{"brace of a section", "log: {level: info\nranks:\n  - {rank: 0, address: 127.0.0.1, run: host}\n",
			"1: not valid YAML: the { is not closed: close it with }"},
		{"brace on the first line", "log: {level: info\n", "1: not valid YAML: the { is not closed: close it with }"},
		{"bracket of a list", "ranks: [\n  {rank: 0, address: 127.0.0.1, run: host},\n  {rank: 1, address: " +
			"127.0.0.2, run: standin}" + tail, "1: not valid YAML: the [ is not closed: close it with ]"},
		{"brace within a list", "ranks: [{rank: 0, address: 127.0.0.1, run: host]\n",
			"1: not valid YAML: the next ] behind this { is on line 1: close it with } where its value ends"},
		{"bracket of users", host + "control:\n  allow:\n    users: [root, daemon\n    groups: [wheel]\n",
			"4: not valid YAML: the [ is not closed: close it with ]"},
		{"brace too many", "log: {level: info}}\n" + host, "1: not valid YAML: a } too many: remove it"},
		{"text behind a brace", "log: {level: info} # as usual\ncontrol: {mode: 0660} x\n",
			"2: not valid YAML: text after the closing }: remove it, or put it on its own line"},

		// Quotes.
		{"quote", host + "control:\n  socket: \"/run/zrlmpid/control.sock\nlog: {level: info}\n",
			"3: not valid YAML: the \" is not closed: close it with \""},
		{"quote that the next one closes", "control:\n  socket: \"/run/a.sock\n  mode: \"0660\"\n",
			"2: not valid YAML: the next \" behind this \" is on line 3: close it with \" where its value ends"},
		{"apostrophe", "ranks:\n  - rank: 0\n    kernel: 'exec:/bin/it's'\n",
			"3: not valid YAML: text after the closing ': quote all of the value"},
		{"backslash", "control: {socket: \"/run\\zrlmpid\"}\n",
			"1: not valid YAML: found unknown escape character: write \\\\ for a backslash, or quote with '"},

		// Indentation.
		{"less than the line before", "log:\n    level: info\n  format: json\n",
			"3: not valid YAML: 2 spaces are before this line, and before no other of its section: indent all of a " +
				"section by the same number"},
		{"more than the line before", "log:\n  level: info\n    format: json\n",
			"3: not valid YAML: this line is indented more than the one before, which has a value: indent both by " +
				"the same number of spaces"},
		{"key of a rank", "ranks:\n  - rank: 0\n    address: 127.0.0.1\n   run: host\n",
			"4: not valid YAML: 3 spaces are before this line, and before no other of its section"},
		{"key among ranks", "ranks:\n  - rank: 0\n  address: 127.0.0.1\n",
			"3: not valid YAML: a key among list entries: indent it by two more spaces, or begin it with - and a space"},
		{"rank among keys", "ranks:\n  rank: 0\n  - rank: 1\n",
			"3: not valid YAML: a list entry among keys: indent it more than the key of the list"},
		{"section within a section", host + "log:\n  level: info\n control: {mode: 0660}\n",
			"4: not valid YAML: 1 spaces are before this line"},
		{"users", host + "control:\n  allow:\n    users:\n      - root\n     - daemon\n",
			"6: not valid YAML: 5 spaces are before this line"},

		// Tabs.
		{"tab", "log:\n\tlevel: info\n", "2: not valid YAML: a tab indents this line: indent with spaces"},
		{"tab behind spaces", "log:\n  level: info\n  \tformat: json\n",
			"3: not valid YAML: a tab indents this line: indent with spaces"},
		{"tab before a list entry", "ranks:\n\t- {rank: 0}\n",
			"2: not valid YAML: a tab indents this line: indent with spaces"},
		{"tab on the first line", "\tlog: {level: info}\n",
			"1: not valid YAML: a tab indents this line: indent with spaces"},

		// Keys.
		{"no colon", "log:\n  level info\n  format: json\n",
			"2: not valid YAML: \"level info\" is not a key with a value: write a colon and a space after the key"},
		{"no space", "log:\n  format: json\n  level:info\n",
			"3: not valid YAML: \"level:info\" is not a key with a value: write a colon and a space after the key"},
		{"two keys on a line", "log: level: info\n",
			"1: not valid YAML: mapping values are not allowed in this context: put each key on its own line"},

		// Users.
		{"one user", host + "control: {allow: {users: root}}\n",
			"2: control.allow.users: want a list here, not one value"},
		{"users without allow", host + "control: {users: [root]}\n",
			"2: control: unknown key \"users\": the keys here are socket, mode, allow"},
		{"empty user", host + "control: {allow: {users: [\"\"]}}\n",
			"2: control.allow.users[0]: empty: give a name or a number, or remove the entry"},
		{"no user", "ranks:\n  - rank: 0\n    allow:\n      users:\n        -\n",
			"5: ranks[0].allow.users[0]: empty: fill in the entry or remove it"},
		{"user that YAML reads as another value", host + "control: {allow: {users: [{name: root}]}}\n",
			"2: control.allow.users[0]: want one value here, not keys with values"},
		{"unquoted @", host + "control: {allow: {users: [@wheel]}}\n",
			"2: not valid YAML: found character that cannot start any token: quote the value that begins with it"},
		{"unquoted *", host + "control:\n  allow: {users: [*all]}\n",
			"3: not valid YAML: *all is an alias, which is not supported: write the value out"},

		// Empty files, and files that are not text.
		{"empty", "", "1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin"},
		{"comments", "# ranks:\n# - {rank: 0}\n",
			"1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin"},
		{"blank lines", "\n\n\n",
			"1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin"},
		{"no ranks", "log: {level: info}\n",
			"1: ranks: no rank runs here: give the ranks of this daemon run: host or run: standin"},
		{"control character", "log: {level: info}\nhttp: {listen: \"\x01\"}\n",
			"2: not valid YAML: the control character '\\x01': remove it"},
		{"Latin-1", "# f\xfcr\nlog: {level: info}\n",
			"1: not valid YAML: bytes that are not UTF-8: save the file as UTF-8"},
	} {
		c, err := Parse(strings.NewReader(tt.file), "f.yaml")
		got, _, _ := strings.Cut(text(err), "\n")
		if !strings.HasPrefix(got, "f.yaml:"+tt.want) || c != nil {
			t.Errorf("%s: got\n%s\nwant\nf.yaml:%s", tt.name, got, tt.want)
		}
	}
}

// TestSyntaxErrorElsewhere checks that valid but unusual lines are not blamed for an error elsewhere.
func TestSyntaxErrorElsewhere(t *testing.T) {
	const sound = "ranks:\n- rank: 0\n  address: 127.0.0.1 # it's \"here\n  run: host\n" +
		"  kernel: |\n    {[ text\n    \t tab\n  link: {pace: {over_words: 3}, # {\n    warn_after: 1s}\nlog:\n  level: \"in\n    fo\"\n  format: long\n    text\n"
	_, err := Parse(strings.NewReader(sound+"http:\n\tlisten: x\n"), "f.yaml")
	if got, want := text(err), "f.yaml:16: not valid YAML: a tab indents this line: indent with spaces"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	for file, want := range map[string]string{
		"log: {level: @info}\nhttp:\n\tlisten: x\n": "1: not valid YAML: found character " +
			"that cannot start any token",
		"log: {level: info}\n\"a\\\"b\": 1\n# a\n# b\nhttp: {listen: @x}\n": "5: not valid YAML: found character " +
			"that cannot start any token",
	} {
		_, err := Parse(strings.NewReader(file), "f.yaml")
		if got := text(err); !strings.HasPrefix(got, "f.yaml:"+want) {
			t.Errorf("got\n%s\nwant\nf.yaml:%s", got, want)
		}
	}
}
