# What bindings/run checks of Go. Read by it, with its functions and variables.
# shellcheck shell=bash disable=SC2154

go_smoke() {
  rm -f "$work/called.go"
  (cd bindings/go && with_device timeout 500 go test -count=1 -timeout 120s \
    -exec "env LD_PRELOAD=$work/libcalls.so SHARDREC_CALLS=$work/called.go SHARDREC_BLOCK_COUNTER=$work/libliveblocks.so" ./...)
}

# The generated sources of the other SWIG, in a copy of the module.
go_smoke_system() {
  rm -rf "$work/go" && cp -r bindings/go "$work/go" &&
    cp "$work/system/go/"* "$work/go/internal/capi/" &&
    bindings/tools/go_wrappers.py "$work/system/api.xml" "$work/go/internal/capi" &&
    (cd "$work/go" && with_device timeout 500 go test -short -count=1 -timeout 120s ./...)
}

# What was collected is overwritten, so that nothing reads it by chance as it was.
go_race() {
  (cd bindings/go && GODEBUG=clobberfree=1 with_device timeout 500 go test -race -gcflags=all=-d=checkptr -count=1 -timeout 240s ./...)
}

# Also what there is without cgo.
go_vet() {
  local unformatted
  unformatted=$("$(go env GOROOT)/bin/gofmt" -l bindings/go examples/go) && [[ -z $unformatted ]] || { echo "gofmt: $unformatted"; return 1; }
  (cd bindings/go && go vet ./... && CGO_ENABLED=0 go vet . ./internal/capi && CGO_ENABLED=0 GOOS=darwin go build ./...)
}

# Two packages are equal, byte for byte.
go_package() {
  [[ ! -e $work/go_user ]] || chmod -R u+w "$work/go_user"
  rm -rf "$work/go_user" && cmp LICENSE bindings/go/LICENSE &&
    bindings/go/package "$work/go_user/proxy" && bindings/go/package "$work/go_user/again" &&
    diff -r "$work/go_user/proxy" "$work/go_user/again"
}

# As a user: the installed library, the packaged module, no checkout, no LD_LIBRARY_PATH.
go_example() (
  user=$(mktemp -d) tool=$build/bin/shardrec
  trap 'rm -rf "$user"' EXIT
  cmake --install "$build" --prefix "$user/prefix" >"$work/go_user/install.log" || return
  pc=$(find "$user/prefix" -name shardrec.pc) || return
  unset LD_LIBRARY_PATH CGO_CFLAGS
  export PKG_CONFIG_PATH=${pc%/*} CGO_LDFLAGS="-Wl,-rpath,$(dirname "${pc%/*}")" GOPROXY=file://$work/go_user/proxy GONOSUMDB=shardrec.org \
    GOMODCACHE=$work/go_user/modules
  if grep -n unsafe examples/go/*/*.go; then return 1; fi
  cp -r examples/go/first examples/go/dlrm "$user" && (cd "$user/first" && go vet . && go run . | grep '^last losses: ') || return
  (cd "$user/first" && go build -o first . && ends_under_limits 100 2100 100 ./first) || return
  cd "$user/dlrm" && go vet . && go build -o dlrm . || return
  for what in train resume serve; do ./dlrm "$what" "$user/run" || return; done
  ends_under_limits 700 2700 100 ./dlrm serve "$user/run" || return
  "$tool" launch --nproc 2 -- ./dlrm train "$user/processes" && ./dlrm train "$user/threads" &&
    "$tool" inspect "$user/threads" --diff "$user/processes" | grep '^the same: 34' || return
  # What the same program leaves in C++.
  "$build/bin/dlrm_cpp" train "$user/cpp" && "$tool" inspect "$user/threads" --diff "$user/cpp" | grep '^the same: 34' || return
  # Without cgo it says what to install.
  CGO_ENABLED=0 go build -o without . || return
  ./without serve "$user/run" 2>"$work/go_user/without.txt" && return 1
  grep 'install gcc, pkg-config and libshardrec' "$work/go_user/without.txt" || return
  # So does the compiler where the headers are older than the module; Go's cache would not notice them.
  mkdir -p "$user/old/shardrec" && echo '#define SHARDREC_API_VERSION 0' >"$user/old/shardrec/shardrec.h" &&
    printf 'Name: shardrec\nDescription: an older one\nVersion: 0\nCflags: -I%s\n' "$user/old" >"$pc" || return
  CGO_CFLAGS=-DOLDER go build -o older . 2>"$work/go_user/older.txt" && return 1
  grep 'the headers of libshardrec are older than this Go module' "$work/go_user/older.txt"
)

go_misuse() {
  printf '{"Replace": {"%s": "%s"}}' "$PWD/bindings/go/misuse.go" "$PWD/bindings/misuse/wrong_kind.go" >"$work/overlay.json"
  (cd bindings/go && refused 3 'cannot use|does not satisfy' go build -overlay "$work/overlay.json" -o /dev/null .)
}

check_go() {
  need "Go" go || return
  attempt "Go: smoke test and raw layer, checked-in sources" go_smoke
  attempt "Go: smoke test and raw layer, Debian's swig" go_smoke_system
  attempt "Go: tests call every function" calls_all go
  attempt "Go: misuse does not compile" go_misuse
  attempt "Go: gofmt and vet are clean, with and without cgo" go_vet
  attempt "Go: tests under the race detector and checkptr" go_race
  attempt "Go: two packages of the module are equal" go_package &&
    attempt "Go: the example trains, resumes and serves from the package" go_example
}
