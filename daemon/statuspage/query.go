package statuspage

import (
	"net/http"
	"net/url"

	"github.com/zrlmpi/zrlmpid/daemon/statuspage/digest"
)

// query is what somebody wants to see.
type query struct {
	// Filter chooses waits, ranks and peers.
	Filter string
	Order  digest.Order
	// All lists peers with which nothing has happened, too.
	All bool
}

// maxFilter is how much of a filter is looked at, in characters.
const maxFilter = 100

// queryOf reads a request. What makes no sense is as if it had not been said.
func queryOf(r *http.Request) query {
	values := r.URL.Query()
	q := query{Filter: digest.Clean(values.Get("q"), maxFilter), All: values.Get("show") == "all"}
	q.Order, _ = digest.ParseOrder(values.Get("sort"))
	return q
}

// String is the query of a URL.
func (q query) String() string {
	v := url.Values{}
	if q.Filter != "" {
		v.Set("q", q.Filter)
	}
	if q.Order != digest.ByTrouble {
		v.Set("sort", q.Order.String())
	}
	if q.All {
		v.Set("show", "all")
	}
	return v.Encode()
}
