#!/usr/bin/env bash
# Installs what a build for wasm needs beside Rust and Node: the wasm32 standard
# library, wasm-bindgen and wasm-pack. A second run finds them and takes a second.
# `npm --prefix js test` and its siblings call it; it is rarely run by hand.
#
#   setup.sh             the above
#   setup.sh runtimes    what the tests in other runtimes and shells need: Chromium, a Redis server,
#                        Python 3, zsh and fish, from Debian's packages; elsewhere install them, and name the browser in
#                        CHROMIUM
#
#   TIDEMARK_TOOLS        where the tools go  (~/.cache/tidemark-tools)
#   TIDEMARK_NO_RUSTUP=1  do not ask rustup's server for the standard library
#
# It leaves $TIDEMARK_TOOLS/path, the folders that a build puts first in PATH.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

wasm_pack=0.15.1
target=wasm32-unknown-unknown
tools=${TIDEMARK_TOOLS:-$HOME/.cache/tidemark-tools}
web=$tools/rust-web # the second-choice toolchain, made of Debian's packages
mkdir -p "$tools/bin" "$tools/log"

say() { printf '[setup] %s\n' "$*"; }
die() { say "error: $*" >&2; exit 1; }

command -v cargo >/dev/null || die 'cargo not found: install Rust from https://rustup.rs'
command -v cc >/dev/null || die 'no C compiler: build scripts need one (on Debian: apt-get install gcc libc6-dev)'
[ -f Cargo.lock ] || die 'Cargo.lock is missing: run cargo generate-lockfile'
bindgen=$(awk '/^name = "wasm-bindgen"$/ { getline; gsub(/[^0-9.]/, ""); print; exit }' Cargo.lock)
[ -n "$bindgen" ] || die 'Cargo.lock does not name wasm-bindgen'

# Two runs at once would write the same files.
if command -v flock >/dev/null; then
  exec 9>"$tools/.lock"
  flock -n 9 || { say "waiting for another set-up in $tools"; flock 9; }
fi

# step NAME COMMAND...: runs it with its output in a log file, prints its time.
step() {
  local name=$1 log start=$SECONDS
  log=$tools/log/$1.log
  shift
  say "$name ..."
  if "$@" >"$log" 2>&1; then
    say "$name: $((SECONDS - start)) s"
  else
    say "$name: failed after $((SECONDS - start)) s; the end of $log:" >&2
    tail -n 15 "$log" >&2
    return 1
  fi
}

# An unreachable server refuses at once, but one that accepts and never answers
# would hold rustup for 180 s a try.
from_rustup() {
  local limit=()
  if command -v timeout >/dev/null; then limit=(timeout --kill-after=5 300); fi
  RUSTUP_MAX_RETRIES=1 RUSTUP_DOWNLOAD_TIMEOUT=20 ${limit[@]+"${limit[@]}"} rustup "$@"
}

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

# ---- Chromium, Redis and Python ----------------------------------------------
debian_packages() (
  export DEBIAN_FRONTEND=noninteractive
  limit=(timeout --kill-after=5 600)
  as_root "${limit[@]}" apt-get update -qq &&
    as_root "${limit[@]}" apt-get install -y -qq --no-install-recommends "$@"
)

if [ "${1:-}" = runtimes ]; then
  missing=()
  [ -x "${CHROMIUM:-/usr/bin/chromium}" ] || missing+=(chromium)
  command -v redis-server >/dev/null || missing+=(redis-server)
  command -v zsh >/dev/null || missing+=(zsh)
  command -v fish >/dev/null || missing+=(fish)
  python3 -c 'import ensurepip, venv' 2>/dev/null || missing+=(python3 python3-venv)
  if [ ${#missing[@]} -gt 0 ]; then
    command -v apt-get >/dev/null || die "install ${missing[*]}: there is no apt-get to do it"
    step "${missing[0]}" debian_packages "${missing[@]}"
  else
    say 'Chromium, Redis, Python, zsh and fish: there already'
  fi
  exit
fi

# ---- the standard library ---------------------------------------------------
has_std() {
  local dir
  dir=$("$@" --print target-libdir --target $target 2>/dev/null) || return 1
  compgen -G "$dir/libstd-*.rlib" >/dev/null
}

# Without rustup's server, on Debian: its rustc-web package has the compiler and
# the library's source, from which the library is built once.
web_stamp() { /usr/bin/rustc -vV && echo 'std,panic_abort,test opt=s remapped'; }
web_ready() { [ -f "$web/stamp" ] && [ "$(web_stamp 2>/dev/null)" = "$(cat "$web/stamp")" ]; }

debian_rust() (
  export DEBIAN_FRONTEND=noninteractive
  as_root apt-get update -qq &&
    lld=$(apt-cache pkgnames lld- | grep -E '^lld-[0-9]+$' | sort -V | tail -n 1) &&
    as_root apt-get install -y -qq --no-install-recommends rustc-web cargo-web rust-web-src "$lld"
)

debian_std() {
  set -e # in a child shell: see its call
  local build host src=/usr/lib/rustlib/src/rust tool
  host=$(/usr/bin/rustc -vV | sed -n 's/^host: //p')
  build=$(mktemp -d)
  rm -rf "$web"
  mkdir -p "$web/bin" "$web/lib/rustlib/$host/bin" "$web/lib/rustlib/$target/lib" "$build/src"

  # Debian's rustc takes /usr for its sysroot however it is started, so these
  # name ours; the host's libraries and the sources stay Debian's.
  for tool in rustc rustdoc; do
    printf '#!/bin/sh\nexec /usr/bin/%s --sysroot "%s" "$@"\n' $tool "$web" >"$web/bin/$tool"
    chmod +x "$web/bin/$tool"
  done
  ln -s /usr/bin/cargo "$web/bin/cargo"
  ln -s "/usr/lib/rustlib/$host/lib" "$web/lib/rustlib/$host/lib"
  ln -s /usr/lib/rustlib/src "$web/lib/rustlib/src"
  ln -s "$(compgen -G '/usr/bin/lld-[0-9]*' | sort -V | tail -n 1)" "$web/lib/rustlib/$host/bin/rust-lld"

  echo '#![no_std]' >"$build/src/lib.rs"
  cat >"$build/Cargo.toml" <<'TOML'
[package]
name = "std-for-wasm"
version = "0.0.0"
edition = "2024"
[profile.release]
opt-level = "s"
codegen-units = 1
panic = "abort"
[workspace]
TOML
  # embed-bitcode: a crate with lto = "fat" links against it. The remaps keep
  # this machine's paths out of what is built with the library.
  (
    cd "$build"
    unset RUSTUP_TOOLCHAIN CARGO_TARGET_DIR CARGO_BUILD_TARGET CARGO_ENCODED_RUSTFLAGS
    export RUSTC=/usr/bin/rustc RUSTC_BOOTSTRAP=1
    RUSTFLAGS="-Cembed-bitcode=yes --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
    RUSTFLAGS+=" --remap-path-prefix=$src=/rustc/std --remap-path-prefix=$(readlink -f $src)=/rustc/std"
    export RUSTFLAGS
    /usr/bin/cargo build --release --target $target -Zbuild-std=std,panic_abort,test
  )
  cp "$build/target/$target/release/deps/"*.rlib "$web/lib/rustlib/$target/lib/"
  rm -rf "$web/lib/rustlib/$target/lib/"libstd_for_wasm-* "$build"
  web_stamp >"$web/stamp"
}

path=$tools/bin
if has_std rustc; then
  say "$target: there already ($(rustc -V))"
elif [ -z "${TIDEMARK_NO_RUSTUP:-}" ] && ! web_ready && command -v rustup >/dev/null &&
  step "$target" from_rustup target add $target; then
  has_std rustc || die "rustup added $target, but to another toolchain than $(command -v rustc) uses"
elif web_ready || command -v apt-get >/dev/null; then
  if web_ready; then
    say "$target: there already, built for $(/usr/bin/rustc -V)"
  else
    say "$target: not from rustup, so from Debian's packages"
    step debian-rust debian_rust
    export -f debian_std web_stamp
    export web target
    step debian-std bash -o pipefail -c debian_std
  fi
  path=$path:$web/bin
else
  die "the standard library for $target is missing: rustup target add $target"
fi

# Rust installed with rustup's minimal profile has neither; only the checks need them.
if ! { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 && command -v rustup >/dev/null; then
  step components from_rustup component add rustfmt clippy || say 'the checks will stop at the missing one'
fi

# ---- wasm-bindgen and wasm-pack ---------------------------------------------
# Built without optimisation: they only start other programs or rewrite one
# small file, and compiling them takes half the time. The shared target folder
# lets the second reuse what the first compiled.
has() { [ "$("$tools/bin/$1" --version 2>/dev/null)" = "$1 $2" ]; }

install() { # COMMAND VERSION CRATE
  if has "$1" "$2"; then
    say "$1 $2: there already"
  else
    say "$1 $2: compiling it takes a minute or two, once"
    step "$1" compile "$3@$2"
  fi
}

compile() (
  unset CARGO_BUILD_TARGET RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
  export CARGO_PROFILE_DEV_DEBUG=0 CARGO_TARGET_DIR="$tools/build"
  # Its lock file may name a release that a registry mirror does not have yet.
  cargo install --debug --force --root "$tools" --locked "$1" ||
    cargo install --debug --force --root "$tools" "$1"
)

install wasm-bindgen "$bindgen" wasm-bindgen-cli
install wasm-pack $wasm_pack wasm-pack
rm -rf "$tools/build"

echo "$path" >"$tools/path"
say "ready after $SECONDS s"
