# shellcheck shell=bash
# What deploy/run and deploy/test need before they can build. Sourced by both.

# What building and running needs from Debian.
# shellcheck disable=SC2034 # the scripts that source this use it
build_packages=(
  libavformat-dev libavcodec-dev libavutil-dev libswresample-dev libopus-dev libogg-dev libseccomp-dev
  libsqlite3-dev zlib1g-dev pkg-config curl
)

# yt-dlp's own virtual environment: where AudioEngine looks for it by itself.
yt_dlp_environment=${XDG_DATA_HOME:-$HOME/.local/share}/antiphon/yt-dlp

say() { printf '%s: %s\n' "deploy/${0##*/}" "$*" >&2; }

fail() {
  say "$@"
  exit 1
}

# Puts Swift on PATH, or says what to do about it.
require_swift() {
  local folder version
  if ! command -v swift > /dev/null; then
    for folder in /opt/swift/usr/bin "$HOME/.local/share/swiftly/bin" /usr/local/swift/usr/bin /usr/libexec/swift/bin; do
      if [[ -x $folder/swift ]]; then
        PATH=$folder:$PATH
        break
      fi
    done
  fi
  command -v swift > /dev/null || fail "Swift is missing.
  Antiphon is built with Swift 6.2 or later. Install it as https://www.swift.org/install/linux tells,
  for example into /opt/swift, and see that 'swift --version' works. Then run this again."
  version=$(swift --version 2> /dev/null | sed -n 's/.*Swift version \([0-9]*\.[0-9]*\).*/\1/p' | head -n 1)
  if [[ -n $version && $(printf '%s\n' 6.2 "$version" | sort -V | head -n 1) != 6.2 ]]; then
    fail "Swift $version is too old: Antiphon needs 6.2 or later. $(command -v swift) is what was found."
  fi
}

# Installs those of the given Debian packages that are missing; quick and quiet where none is.
require_packages() {
  local package missing=() as_root=()
  if ! command -v dpkg-query > /dev/null; then
    say "this is no Debian: see to it yourself that there is what these packages hold: $*"
    return
  fi
  for package in "$@"; do
    # The state's first letter says what is wanted, the second what is there.
    [[ $(dpkg-query -W -f='${db:Status-Abbrev}' "$package" 2> /dev/null) == ?i* ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0

  if ((EUID != 0)); then
    command -v sudo > /dev/null || fail "these Debian packages are missing, and there is no sudo to install them with.
  As root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  say "installing ${missing[*]}"
  local install=(
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=300
    --no-install-recommends install "${missing[@]}"
  )
  # The package lists may be missing or old: they are fetched only then.
  if ! "${install[@]}" < /dev/null > /dev/null 2>&1; then
    "${as_root[@]}" apt-get -q -o DPkg::Lock::Timeout=300 update < /dev/null || fail "'apt-get update' failed: see above."
    "${install[@]}" < /dev/null || fail "these packages could not be installed: ${missing[*]}. See above."
  fi
}

# Puts the files of packages that would start a service if they were installed into the folder $1.
unpack_packages() {
  local tools=$1 package
  shift
  command -v dpkg-deb > /dev/null || return 0
  mkdir -p "$tools"
  for package in "$@"; do
    [[ -e $tools/$package.deb ]] && continue
    (cd -- "$tools" && apt-get -q download "$package" < /dev/null >&2 && mv -- "$package"_*.deb "$package.deb") \
      || fail "the Debian package $package could not be fetched; perhaps 'apt-get update' helps. See above."
    dpkg-deb -x "$tools/$package.deb" "$tools"
  done
}

# Installs the newest yt-dlp, or upgrades to it. Not pinned: sites change, and an old one soon finds nothing.
install_yt_dlp() {
  if ! "$yt_dlp_environment/bin/python" -c 'import pip' 2> /dev/null; then
    rm -rf "$yt_dlp_environment"
    mkdir -p "${yt_dlp_environment%/*}"
    python3 -m venv "$yt_dlp_environment" || return
  fi
  # deno is the JavaScript runtime that YouTube's player needs.
  "$yt_dlp_environment/bin/pip" install --quiet --disable-pip-version-check --upgrade 'yt-dlp[default,deno]' < /dev/null >&2
}
