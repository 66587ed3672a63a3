# What bindings/run checks of Rust. Read by it, with its functions and variables.
# shellcheck shell=bash disable=SC2154

rust_smoke() {
  rm -f "$work/called.rust"
  (cd bindings/rust && with_device timeout 500 cargo test --offline --tests \
    --config "target.'cfg(all())'.runner = ['env', 'LD_PRELOAD=$work/libcalls.so', 'SHARDREC_CALLS=$work/called.rust']")
}
rust_clean() {
  (cd bindings/rust && cargo fmt --check && cargo clippy --offline --all-targets -- -D warnings)
}
# Where no library is to be found: documentation is made of the sources alone. Its samples are then compiled and run.
rust_doc() {
  (cd bindings/rust && unset SHARDREC_LIB_DIR && export PKG_CONFIG_PATH="" PKG_CONFIG_LIBDIR="$work/none" CARGO_TARGET_DIR=$work/cargo-doc RUSTDOCFLAGS="-D warnings" &&
    cargo doc --offline --no-deps && cargo clean --doc && DOCS_RS=1 cargo doc --offline --no-deps &&
    refused 1 '^error.*evaluation panicked: libshardrec was not found: pkg-config says: .*shardrec.*not found' cargo build --offline)
}
rust_samples() {
  (cd bindings/rust && timeout 300 cargo test --offline --doc)
}
# The crates as they are published: the same bytes each time; a program that knows only them and an installed library
# of the right version; CMake finds all that it reads in the sources that go with them.
rust_package() {
  local prefix=$work/rust-prefix crates=$work/crates version pc
  bindings/rust/package "$crates" && bindings/rust/package "$crates.again" && diff -r "$crates" "$crates.again" || return
  rm -rf "$prefix" && cmake --install "$build" --prefix "$prefix" >/dev/null && pc=$(find "$prefix" -name shardrec.pc) || return
  (
    unset SHARDREC_LIB_DIR
    export PKG_CONFIG_PATH=${pc%/*}
    bindings/rust/tools/consumer "$crates" "$work/consumer" || exit
    for version in 0.1.9 0.3.0; do  # too old, and of another minor version
      sed -i "s/^Version:.*/Version: $version/" "$pc"
      refused 1 "^error.*says: .*version '$version'" bindings/rust/tools/consumer "$crates" "$work/consumer" || exit
    done
  ) || return
  rm -rf "$work/vendored" && mkdir "$work/vendored" &&
    tar xzf "$crates"/shardrec-sys-*.crate -C "$work/vendored" --strip-components 1 &&
    cmake -S "$work/vendored/vendor" -B "$work/vendored/build" -DSHARDREC_TESTS=OFF -DSHARDREC_TOOLS=OFF -DSHARDREC_CUDA=OFF
}

# The program of examples/rust on the packaged crates, as threads and over Gloo, beside the same one in C++.
rust_example() {
  local folder=$work/example registry run=$work/example/run step auc
  # What Cargo has unpacked and compiled of a version, it takes for that version for good; here versions change.
  local -x CARGO_HOME=$folder/home CARGO_TARGET_DIR=$folder/target
  registry=(--config 'source.crates-io.replace-with="packaged"' --config "source.packaged.local-registry=\"$work/crates\"")
  rm -rf "$folder" && cp -r examples/rust "$folder" && rm -f "$folder/Cargo.lock" && mkdir "$run" || return
  (cd "$folder" && rustfmt --check src/main.rs src/bin/first.rs build.rs && cargo clippy --offline "${registry[@]}" -- -D warnings &&
    cargo build --offline "${registry[@]}" && grep -q '^#!\[forbid(unsafe_code)\]' src/main.rs) &&
    "$CARGO_TARGET_DIR/debug/first" | grep '^last losses: ' && ends_under_limits 20 1000 40 "$CARGO_TARGET_DIR/debug/first" || return
  same_run() { "$build/bin/shardrec" inspect "$1" --diff "$2" | tail -n 1 | grep '^the same: '; }  # DIR DIR
  local dlrm=$CARGO_TARGET_DIR/debug/dlrm launch=("$build/bin/shardrec" launch --nproc)
  "$build/bin/dlrm_cpp" train "$run/cpp" && "$dlrm" train "$run/threads" && same_run "$run/threads" "$run/cpp" &&
    "${launch[@]}" 2 -- "$dlrm" train "$run/gloo" && same_run "$run/gloo" "$run/cpp" &&
    "$build/bin/dlrm_cpp" resume "$run/cpp" && "$dlrm" resume "$run/threads" && same_run "$run/threads" "$run/cpp" &&
    "${launch[@]}" 3 -- "$dlrm" resume "$run/gloo" && same_run "$run/gloo" "$run/cpp" || return
  "$dlrm" serve "$run/gloo" | tee "$run/served" || return
  ends_under_limits 100 1000 50 "$dlrm" serve "$run/gloo" || return
  read -r step auc < <(sed -nE 's/^serving step ([0-9]+): test AUC (0\.[0-9]{4})$/\1 \2/p' "$run/served")
  [[ $step == 100 ]] && awk -v auc="$auc" 'BEGIN { exit !(auc > 0.7) }'
}

# Each says with which errors it is refused, and with how many of each.
rust_misuse() {
  local check=(rustc --edition 2021 --crate-type lib --emit metadata -o "$work/misuse.rmeta" -L "$CARGO_TARGET_DIR/debug/deps"
    --extern "shardrec=$(ls -t "$CARGO_TARGET_DIR"/debug/deps/libshardrec-*.rlib | head -n 1)") file
  for file in bindings/misuse/*.rs; do
    if "${check[@]}" "$file" >"$work/refused" 2>&1; then echo "$file: accepted"; return 1; fi
    diff <(sed -n 's|^//! Refused: ||p' "$file" | sed 's/, /\n/g' | sort) \
      <(sed -nE 's/^error\[(E[0-9]+)\].*/\1/p' "$work/refused" | sort | uniq -c | awk '{ print $2, $1 }') ||
      { echo "$file"; cat "$work/refused"; return 1; }
  done
}

check_rust() {
  need "Rust" cargo rustc rustfmt cargo-clippy cmake || return
  attempt "Rust: tests" rust_smoke
  attempt "Rust: tests call every function" calls_all rust
  attempt "Rust: misuse does not compile" rust_misuse
  attempt "Rust: formatted, and nothing for Clippy to say" rust_clean
  attempt "Rust: documentation without a library" rust_doc
  attempt "Rust: documented samples" rust_samples
  attempt "Rust: crates, and a program on them alone" rust_package
  attempt "Rust: a DLRM on the crates has the bytes of the one in C++" rust_example
}
