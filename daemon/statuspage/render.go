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
	"github.com/zrlmpi/zrlmpid/diagnosis"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

//go:embed assets
var assets embed.FS

// staticParts are the static parts common to all pages.
type staticParts struct {
	template *template.Template
	style    template.CSS
	script   template.JS
	policy   string
}

// loadStatic parses the embedded files once, for the first page. The tests of this package check that they can be
// parsed.
var loadStatic = sync.OnceValue(func() staticParts {
	read := func(name string) string {
		b, err := assets.ReadFile("assets/" + name)
		if err != nil {
			panic(err)
		}
		return string(b)
	}
	css, js := read("style.css"), read("live.js")
	return staticParts{
		template: template.Must(template.New("").Funcs(templateFuncs).ParseFS(assets, "assets/*.html")),
		style:    template.CSS(css), script: template.JS(js),
		// The content security policy permits only the embedded script and style sheet, which it identifies by their
		// hashes.
		policy: fmt.Sprintf("default-src 'none'; script-src '%s'; style-src '%s'; connect-src 'self'; img-src data:; "+
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'", hash(js), hash(css)),
	}
})

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// templateFuncs are the functions available in templates.
var templateFuncs = template.FuncMap{
	"duration": words.Duration, "latency": words.Latency, "quantity": words.Quantity, "plural": words.Plural,
	"count": formatCount, "sentence": words.Sentence, "ranklist": digest.RankList,
	"bytesrate": words.Bytes, "clean": func(s string) string { return words.Clean(s, maxWords) },
	"clock":  func(t time.Time) string { return t.Format("15:04:05") },
	"day":    func(t time.Time) string { return t.Format("2\u00a0Jan") },
	"stamp":  func(t time.Time) string { return t.Format(time.RFC3339) },
	"long":   func(seconds float64) bool { return digest.AgeOf(seconds) == digest.Long },
	"waits":  func(seconds float64) bool { return digest.AgeOf(seconds) != digest.Brief },
	"failed": func(s digest.Severity) bool { return s == digest.Failure },
	"orders": digest.Orders, "noproblems": digest.NoProblems, "pair": func(name string, of any) any {
		return struct {
			Name string
			Of   any
		}{name, of}
	},
	"packets": packetsCommand, "ordername": func(o digest.Order) string {
		return map[digest.Order]string{digest.ByProblem: "problems first", digest.ByTraffic: "most traffic first",
			digest.ByRoundTrip: "slowest first", digest.ByRank: "by rank"}[o]
	},
}

// packetsCommand returns the command that shows the packets between the two ranks of a finding, or "" if it does not
// name two ranks.
func packetsCommand(f *diagnosis.Finding) string {
	if f.Rank == diagnosis.AnyRank || f.Peer == diagnosis.AnyRank || f.Rank == f.Peer {
		return ""
	}
	return fmt.Sprintf("zrlctl capture -o hang.pcapng && zrlctl decode hang.pcapng --pair %d,%d", f.Peer, f.Rank)
}

// formatCount formats a number with thin spaces between groups of three digits.
func formatCount(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

// list is a list on the page whose items change over time.
type list struct {
	order []string
	items map[string]string // HTML of each item, by key
}

// view is a sample rendered as HTML for one query. It consists of fixed pieces and of lists.
type view struct {
	sampledAt time.Time
	title     string
	pieces    map[string]string
	lists     map[string]list
	model     *pageModel
}

// pieceNames contains the names of the templates for pieces of the page. Each name is also the id of the HTML element
// that the template fills.
var pieceNames = []string{"verdict", "announcement", "facts", "tiles", "live-chart", "slow-chart", "waits-more",
	"problems-more", "ranks-more", "peers-more", "failures-more"}

// render renders a sample for a query. The caller must hold the page's lock.
func (p *Page) render(s *sample, q query) (*view, error) {
	v := &view{sampledAt: s.takenAt, pieces: make(map[string]string, len(pieceNames)), lists: make(map[string]list),
		model: p.buildModel(s, q)}
	v.title = "zrlmpid " + p.opts.Host
	if n := v.model.AllWaits; n > 0 {
		v.title = fmt.Sprintf("(%d) %s", n, v.title)
	}
	var b strings.Builder
	piece := func(name string, data any) (string, error) {
		b.Reset()
		if err := loadStatic().template.ExecuteTemplate(&b, name, data); err != nil {
			return "", fmt.Errorf("status page: %w", err)
		}
		return strings.TrimSpace(b.String()), nil
	}
	for _, name := range pieceNames {
		html, err := piece(name, v.model)
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
		html, err := piece(template, item{key, v.model, data})
		failed = cmp.Or(failed, err)
		l.order, l.items[key] = append(l.order, key), html
		v.lists[name] = l
	}
	v.addItems(add)
	return v, failed
}

// item is the data passed to the template of a list item.
type item struct {
	Key  string
	Page *pageModel
	Of   any
}

// addItems calls the function add for every item of every list. An item keeps its key as long as it describes the same
// thing.
func (v *view) addItems(add func(name, template, key string, data any)) {
	model := v.model
	for _, name := range listNames {
		v.lists[name] = list{}
	}
	for i := range model.Cycles {
		add("cycles", "cycle", fmt.Sprintf("c%d", model.Cycles[i].Ranks[0]), &model.Cycles[i])
	}
	for i := range model.Causes {
		add("causes", "cause", fmt.Sprintf("%s %d", model.Causes[i].Cause, model.Causes[i].Rank), &model.Causes[i])
	}
	for i := range model.Waits {
		w := model.Waits[i]
		add("waits", "wait", fmt.Sprintf("%d>%d/%s", w.Rank, w.Peer, w.Direction), w)
	}
	for i := range model.Problems {
		add("problems", "problem", hash(model.Problems[i].Text)[7:19], &model.Problems[i])
	}
	for i := range model.Ranks {
		add("ranks", "rank", fmt.Sprint(model.Ranks[i].Rank), model.Ranks[i])
	}
	for i := range model.Peers {
		add("peers", "peer", fmt.Sprintf("%d>%d", model.Peers[i].Rank, model.Peers[i].Peer.Peer), &model.Peers[i])
	}
	for i := range model.Failures {
		f := &model.Failures[i]
		add("failures", "failure", hash(fmt.Sprint(f.Rank, f.What(), f.Reason))[7:19], f)
	}
	for i := range model.Entries {
		e := &model.Entries[i]
		add("log", "entry", hash(e.Text)[7:19], e)
	}
}

var listNames = []string{"cycles", "causes", "waits", "problems", "ranks", "peers", "log", "failures"}
