package doctor

import (
	"strings"

	"github.com/zrlmpi/zrlmpid/internal/words"
)

func plural(n int, what string) string { return words.Plural(n, what) }

// list formats the names of the elements as a list for use in a sentence.
func list[T any](all []T, name func(T) string) string {
	words := make([]string, len(all))
	for i, one := range all {
		words[i] = name(one)
	}
	return strings.Join(words, ", ")
}
