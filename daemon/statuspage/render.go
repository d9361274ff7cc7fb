package statuspage

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"sync"
	"time"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

//go:embed assets
var assets embed.FS

// parts are what all pages are made of.
type parts struct {
	template *template.Template
	style    template.CSS
	script   template.JS
	policy   string
}

// static is read once, and only by a program that has a page. That the files are there
// and parse is a property of the build, which every test of this package checks.
var static = sync.OnceValue(func() parts {
	read := func(name string) string {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	css, js := read("style.css"), read("live.js")
	return parts{
		template: template.Must(template.New("").Funcs(words).ParseFS(assets, "assets/*.html")),
		style:    template.CSS(css), script: template.JS(js),
		// Nothing runs but the one script and the one style sheet, by their hashes.
		policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", hash(js), hash(css)),
	}
})

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// words are what the templates can say.
var words = template.FuncMap{
	"duration": digest.Duration, "latency": digest.Latency, "quantity": digest.Quantity, "plural": digest.Plural, "are": digest.Are,
	"count": count, "sentence": digest.Sentence,
	"bytes": func(n int64) string { return digest.Bytes(float64(n)) }, "bytesrate": digest.Bytes,
	"join":   func(words []string) string { return strings.Join(words, ", ") },
	"clock":  func(t time.Time) string { return t.Format("15:04:05") },
	"stamp":  func(t time.Time) string { return t.Format(time.RFC3339) },
	"old":    func(seconds float64) bool { return digest.AgeOf(seconds) == digest.Old },
	"waits":  func(seconds float64) bool { return digest.AgeOf(seconds) != digest.Young },
	"bad":    func(s digest.Severity) bool { return s == digest.Bad },
	"orders": digest.Orders, "pair": func(name string, of any) any {
		return struct {
			Name string
			Of   any
		}{name, of}
	},
	"ordername": func(o digest.Order) string {
		return map[digest.Order]string{digest.ByTrouble: "trouble first", digest.ByTraffic: "traffic", digest.ByRoundTrip: "round trip", digest.ByRank: "rank"}[o]
	},
}

// count is a number with thin spaces between thousands.
func count(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// list is one whose items come and go.
type list struct {
	order []string
	items map[string]string // HTML by key
}

// view is what a sample shows to somebody, as HTML: parts that are always there, and
// lists.
type view struct {
	at     time.Time
	title  string
	pieces map[string]string
	lists  map[string]list
	shown  *shown
}

// pieceNames are templates, and the ids of the elements that they fill.
var pieceNames = []string{"verdict", "said", "facts", "tiles", "live-chart", "slow-chart", "waits-more", "troubles-more", "ranks-more", "peers-more"}

// render makes a view. The page's lock is held.
func (p *Page) render(s *sample, q query) (*view, error) {
	v := &view{at: s.at, pieces: make(map[string]string, len(pieceNames)), lists: make(map[string]list), shown: p.look(s, q)}
	v.title = "zrlmpid " + p.opts.Host
	if n := v.shown.AllWaits; n > 0 {
		v.title = fmt.Sprintf("(%d) %s", n, v.title)
	}
	var b strings.Builder
	piece := func(name string, data any) (string, error) {
		b.Reset()
		if err := static().template.ExecuteTemplate(&b, name, data); err != nil {
			return "", fmt.Errorf("status page: %w", err)
		}
		return strings.TrimSpace(b.String()), nil
	}
	for _, name := range pieceNames {
		html, err := piece(name, v.shown)
		if err != nil {
			return nil, err
		}
		v.pieces[name] = html
	}
	var failed error
	add := func(name, template, key string, data any) {
		l := v.lists[name]
		if l.items == nil {
			l.items = make(map[string]string)
		}
		for n, first := 2, key; l.items[key] != ""; n++ {
			key = fmt.Sprintf("%s %d", first, n)
		}
		html, err := piece(template, item{key, v.shown, data})
		failed = cmp.Or(failed, err)
		l.order, l.items[key] = append(l.order, key), html
		v.lists[name] = l
	}
	v.fill(add)
	return v, failed
}

// item is what the template of an item of a list is given.
type item struct {
	Key  string
	Page *shown
	Of   any
}

// fill adds the items of all lists. A key is the same as long as an item is about the
// same thing.
func (v *view) fill(add func(name, template, key string, data any)) {
	s := v.shown
	for _, name := range listNames {
		v.lists[name] = list{}
	}
	for i := range s.Cycles {
		add("cycles", "cycle", fmt.Sprintf("c%d", s.Cycles[i].Ranks[0]), &s.Cycles[i])
	}
	for i := range s.Waits {
		w := &s.Waits[i]
		add("waits", "wait", fmt.Sprintf("%d>%d/%s", w.Rank, w.Peer, w.Direction), w)
	}
	for i := range s.Troubles {
		add("troubles", "trouble", hash(s.Troubles[i].Text)[7:19], &s.Troubles[i])
	}
	for i := range s.Ranks {
		add("ranks", "rank", fmt.Sprint(s.Ranks[i].Rank.Rank), &s.Ranks[i])
	}
	for i := range s.Peers {
		add("peers", "peer", fmt.Sprintf("%d>%d", s.Peers[i].Peer.Rank, s.Peers[i].Peer.Peer), &s.Peers[i])
	}
	for i := range s.Entries {
		e := &s.Entries[i]
		add("log", "entry", hash(e.Text)[7:19], e)
	}
}

var listNames = []string{"cycles", "waits", "troubles", "ranks", "peers", "log"}
