package statuspage

import (
	"net/http"
	"net/url"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
	"github.com/zrlmpi/zrlmpid/internal/words"
)

// query contains the parameters in the URL of a client's request.
type query struct {
	// Filter selects waits, ranks and peers.
	Filter string
	Order  digest.Order
	// All means that the page also lists silent peers.
	All bool
}

// maxFilter is the maximum length of a filter in characters.
const maxFilter = 100

// parseQuery returns the query contained in a request. It ignores invalid values.
func parseQuery(r *http.Request) query {
	values := r.URL.Query()
	q := query{Filter: words.Clean(values.Get("q"), maxFilter), All: values.Get("show") == "all"}
	q.Order, _ = digest.ParseOrder(values.Get("sort"))
	return q
}

// String returns the query as a URL query string.
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
