package statuspage

import (
	"bytes"
	"encoding/json"
	"html/template"
	"net/http"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// setHeaders sets the headers common to all answers: no caching, no sniffing, no referrer.
func setHeaders(w http.ResponseWriter) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
}

// document is the data passed to the page's template.
type document struct {
	*pageModel
	Title  string
	Style  template.CSS
	Script template.JS
	Pieces map[string]template.HTML
	Lists  map[string]template.HTML
}

// servePage writes the page. html/template has already escaped the parts, so they must not be escaped again.
func (p *Page) servePage(w http.ResponseWriter, r *http.Request) {
	v, err := p.view(p.takeSample(maxSampleAge), parseQuery(r))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	doc := document{
		pageModel: v.model, Title: v.title, Style: loadStatic().style, Script: loadStatic().script,
		Pieces: make(map[string]template.HTML), Lists: make(map[string]template.HTML),
	}
	for name, html := range v.pieces {
		doc.Pieces[name] = template.HTML(html)
	}
	for name, l := range v.lists {
		var b bytes.Buffer
		for _, key := range l.order {
			b.WriteString(l.items[key])
			b.WriteByte('\n')
		}
		doc.Lists[name] = template.HTML(b.String())
	}
	var b bytes.Buffer
	if err := loadStatic().template.ExecuteTemplate(&b, "page.html", doc); err != nil {
		http.Error(w, "status page: "+err.Error(), http.StatusInternalServerError)
		return
	}
	setHeaders(w)
	w.Header().Set("Content-Security-Policy", loadStatic().policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // an error means that the client is gone
}

// serveStatus writes the status in the same form as `zrlctl status --json`.
func (p *Page) serveStatus(w http.ResponseWriter, _ *http.Request) {
	s := p.takeSample(maxSampleAge)
	setHeaders(w)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(digest.NewDocument(&s.status, s.digest)) // an error means that the client is gone
}
