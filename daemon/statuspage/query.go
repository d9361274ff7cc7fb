package statuspage

import (
	"net/http"
	"net/url"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// query is the query of a client.
type query struct {
	// Filter selects waits, ranks and peers.
	Filter string
	Order  digest.Order
	// All includes silent peers.
	All bool
}

// maxFilter limits a filter, in characters.
const maxFilter = 100

// queryOf returns the query of a request. Invalid values are ignored.
func queryOf(r *http.Request) query {
	values := r.URL.Query()
	q := query{Filter: words.Clean(values.Get("q"), maxFilter), All: values.Get("show") == "all"}
	q.Order, _ = digest.ParseOrder(values.Get("sort"))
	return q
}

// String returns the query in URL form.
func (q query) String() string {
	v := url.Values{}
	if q.Filter != "" {
		v.Set("q", q.Filter)
	}
	if q.Order != digest.ByProblem {
		v.Set("sort", q.Order.String())
	}
	if q.All {
		v.Set("show", "all")
	}
	return v.Encode()
}
