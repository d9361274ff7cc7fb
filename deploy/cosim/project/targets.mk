# Common to the projects of all languages. zrlmpid and zrlctl are searched for in PATH, and then in
# the folder of the zrlctl that wrote this file.
export PATH := $(PATH):@BIN@

# $(call need,PROGRAM,PACKAGE) fails if PROGRAM is not installed, and names Debian's package.
need = @command -v $(firstword $1) >/dev/null || { echo "$(firstword $1) is missing: install Debian's package $2, or its equivalent" >&2; exit 1; }

.PHONY: echo run clean
.DELETE_ON_ERROR:

echo: role
	sh cosim/echo.sh

run: role
	zrlmpid --config cluster.yaml

clean:
	rm -rf build role *.o e~*.o waves.* zrlmpid.log
