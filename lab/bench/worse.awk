# Reads the output of `benchstat -format csv` for two files, and fails if a median in the
# second file is significantly worse than in the first, by more than threshold percent. For
# rates, lower is worse; for all other figures, higher is worse.
BEGIN { FS = "," }
/^pkg: / { pkg = substr($0, 6) }
$1 == "" && $2 != "" && $2 != "base" { unit = $2 }
$1 == "" || $1 == "geomean" || NF < 7 || $6 == "~" || $6 == "" { next }
{
	compared++
	from = unit ~ /\/s$/ ? $4 : $2
	to = unit ~ /\/s$/ ? $2 : $4
	if (to > from * (1 + threshold / 100)) {
		printf "worse by more than %s %%: %s %s: %s %s instead of %s\n", threshold, pkg, $1, $4, unit, $2
		failed = 1
	}
}
END {
	if (!failed)
		printf "no median is worse by more than %s %% (%d differ significantly)\n", threshold, compared
	exit failed
}
