package strictyaml

import "fmt"

// SuggestName returns ` (did you mean "x"?)`, where x is the known name of which got is probably a misspelling. It
// returns "" if there is no such name.
func SuggestName(got string, known []string) string {
	// A word longer than this is hardly a misspelling of a name, and comparing it would take time.
	const longest = 32
	if len(got) > longest {
		return ""
	}
	best, distance := "", len(got)/3+1
	for _, name := range known {
		if d := editDistance(got, name); d <= distance && d < len(name) {
			best, distance = name, d-1
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf(" (did you mean %q?)", best)
}

// editDistance returns the Levenshtein distance of two names: the number of bytes to insert, delete or replace to turn
// one into the other.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
