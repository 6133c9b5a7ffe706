# shellcheck shell=bash
# The other scripts source this file. It goes to the root of the repository and defines
#
#   environment [EXTRA...]   make .venv hold the project (editable) with these extras; then $python runs in it
#
# It needs Python 3.11 or newer with pip, or uv. It installs again only after pyproject.toml changes.
# TILEARRAY_PYTHON names the interpreter for a new .venv; delete .venv to start over.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
python=$PWD/.venv/bin/python
torch=cpu # the build of torch that uv installs: `cpu` saves gigabytes of CUDA libraries, `auto` fits the GPU

say() { printf '==> %s\n' "$*" >&2; }

find_python() {
    local candidate
    for candidate in ${TILEARRAY_PYTHON:-python3 python3.14 python3.13 python3.12 python3.11 python}; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    say "Python 3.11 or newer is needed: put it on PATH, or write TILEARRAY_PYTHON=/path/to/python $0"
    return 1
}

# On a terminal the installer draws its own progress. Elsewhere each download and each phase is one line, and
# .venv/install.log has the rest.
progress() {
    local line
    if [[ -t 1 ]]; then
        "$@"
    else
        "$@" 2>&1 | tee .venv/install.log | while IFS= read -r line; do
            case $line in
                *Downloading\ *.metadata*) ;;
                *Downloading\ * | *Building\ * | *Installing\ * | *Successfully\ * | *[Ee]rror* | *ERROR* | *Resolved* | *Installed\ *)
                    printf '    %.116s\n' "${line#"${line%%[![:space:]]*}"}"
                    ;;
            esac
        done >&2
    fi
}

with_uv() {
    local install=(uv pip install --python "$python" --editable "$1")
    if [[ ! -x $python ]]; then
        uv venv --quiet --python "${TILEARRAY_PYTHON:->=3.11}" .venv || return
    fi
    if [[ $1 == *test* || $1 == *conformance* || $1 == *bench* ]]; then # the extras that bring torch
        if progress "${install[@]}" --torch-backend "$torch"; then return; fi
        say "that failed; trying once more with the usual build of torch, which may bring 2 GB of CUDA libraries"
    fi
    progress "${install[@]}"
}

with_pip() {
    local base
    base=$(find_python) || return
    if [[ ! -x $python ]]; then
        # Debian and Ubuntu ship ensurepip apart: the pip of $base installs into .venv.
        "$base" -m venv --without-pip .venv || return
    fi
    progress "$base" -m pip --python "$python" install --disable-pip-version-check --editable "$1"
}

# An editable install knows the folder by its name, so a copy elsewhere is not installed yet.
state() { pwd && cat pyproject.toml; }

# Whether .venv holds the project as it is now, with these extras and perhaps others.
installed() {
    local stamp extra
    for stamp in .venv/installed-*; do
        state | cmp -s - "$stamp" || continue
        for extra in "$@"; do [[ ,${stamp#.venv/installed-}, == *,$extra,* ]] || continue 2; done
        return 0
    done
    return 1
}

environment() {
    local extras project installer
    if installed "$@"; then return; fi
    extras=$(IFS=, && echo "$*")
    project=.${extras:+[$extras]}
    installer=$(command -v uv >/dev/null && echo uv || echo pip)
    say "installing $project into .venv with $installer: once, 1 to 5 minutes; 1.3 GB on Linux, of which Triton 1.0 GB"
    if [[ $installer == pip && ,$extras, == *,test,* ]]; then
        say "on Python 3.11 pip adds torch with its CUDA libraries, 2 GB; uv installs its CPU build"
    fi
    if ! "with_$installer" "$project"; then
        say "the installation failed; unless $installer has written here, see .venv/install.log"
        return 1
    fi
    state >".venv/installed-$extras"
    say "installed in $SECONDS s"
}
