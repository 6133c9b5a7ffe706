# shellcheck shell=bash
# Sourced by the other scripts. Goes to the root of the repository and defines
#
#   environment EXTRA...   make .venv hold the project (editable) with these extras; then $python runs in it
#
# Needs Python 3.11 or newer with pip, or uv. What is installed stays until pyproject.toml changes.
# TILEARRAY_PYTHON names the interpreter to make .venv from; delete .venv to start over.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$PWD/.venv/bin/python

say() { printf '==> %s\n' "$*"; }

find_python() {
    local candidate
    for candidate in ${TILEARRAY_PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed: put it on PATH, or write TILEARRAY_PYTHON=/path/to/python $0" >&2
    return 1
}

with_uv() {
    local install=(uv pip install --quiet --python "$python" --editable ".[$1]")
    if [[ ! -x $python ]]; then
        uv venv --quiet --python "${TILEARRAY_PYTHON:->=3.11}" .venv
    fi
    # Torch's CPU build where uv can have it: the usual one for Linux brings gigabytes of CUDA along.
    "${install[@]}" --torch-backend cpu 2>/dev/null || "${install[@]}"
}

with_pip() {
    local base
    base=$(find_python)
    if [[ ! -x $python ]]; then
        # No ensurepip, which Debian and Ubuntu ship apart: the pip of $base installs into .venv.
        "$base" -m venv --without-pip .venv
    fi
    "$base" -m pip --python "$python" install --quiet --disable-pip-version-check --editable ".[$1]"
}

environment() {
    local extras stamp
    extras=$(IFS=, && echo "$*")
    stamp=.venv/installed-$extras
    # An editable install knows the folder by its name, so a copy elsewhere is not installed yet.
    if { pwd && cat pyproject.toml; } | cmp -s - "$stamp"; then return; fi

    if command -v uv >/dev/null; then
        say "installing tilearray[$extras] into .venv with uv"
        with_uv "$extras"
    else
        say "installing tilearray[$extras] into .venv with pip; the first time this takes a minute or two"
        with_pip "$extras"
    fi
    { pwd && cat pyproject.toml; } >"$stamp"
}
