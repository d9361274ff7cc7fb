# What the projects of all languages have. zrlmpid and zrlctl are those of PATH, or those beside
# the zrlctl that has written this file.
export PATH := $(PATH):@BIN@

.PHONY: echo run clean
.DELETE_ON_ERROR:

echo: role
	sh cosim/echo.sh

run: role
	zrlmpid --config cluster.yaml

clean:
	rm -rf build role *.o e~*.o waves.* zrlmpid.log
