# Rust of Debian; the crates from a local registry, without the network. Read by newcomer, with its functions and variables.
# shellcheck shell=bash disable=SC2154

artefacts_rust() { .ci/install cargo-web:cargo rustc-web:rustc && bindings/rust/package "$work/crates"; }
artefacts_rust_vendored() { artefacts_rust; }

build_rust() {  # FOLDER CARGO_ARGUMENTS...
  local folder=$1; shift
  rm -rf "$root/root/crates" "$root/root/$folder" && cp -r "$work/crates" "$root/root/crates" &&
    mkdir -p "$root/root/examples" && cp -r examples/rust "$root/root/$folder" &&
    inside "cd $folder; export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_DIR=/cache/ccache
      cargo build --release --offline -j 2 --config 'source.crates-io.replace-with=\"packaged\"' \
        --config 'source.packaged.local-registry=\"/root/crates\"' $*"
}
library_of() {  # PROGRAM PATTERN
  inside "ldd $1 | grep -E '=> $2.*/libshardrec[.]so' || { ldd $1; echo 'error: another library'; exit 1; }"
}

language_rust() {
  install cargo-web rustc-web gcc libc6-dev pkg-config && build_rust examples/rust &&
    library_of examples/rust/target/release/dlrm '(/usr)?/lib/' && dlrm examples/rust/target/release/dlrm
}

# The library from the sources in the crate; the packages for its development are not there meanwhile. What is compiled
# is kept in the cache, by its contents.
language_rust_vendored() {
  install cargo-web rustc-web g++ cmake make ccache pkg-config libtbb-dev libhwy-dev nlohmann-json3-dev libxxhash-dev \
    libsodium-dev libopenblas-serial-dev libgloo-dev && inside "apt-get remove -y -qq libshardrec-dev" &&
    build_rust examples/rust_vendored --features vendored &&
    library_of examples/rust_vendored/target/release/dlrm /root/examples/rust_vendored/target/release/build/ &&
    dlrm examples/rust_vendored/target/release/dlrm && install "/packages/libshardrec-dev*.deb"
}
