# Common to the projects of all languages. zrlmpid and zrlctl are searched for in PATH, and then in
# the folder of the zrlctl that wrote this file.
export PATH := $(PATH):@BIN@

.PHONY: echo run clean
.DELETE_ON_ERROR:

echo: role
	sh cosim/echo.sh

run: role
	zrlmpid --config cluster.yaml

clean:
	rm -rf build role *.o e~*.o waves.* zrlmpid.log
