# shellcheck shell=bash
# deploy/install's versions: folders side by side, of which `current` is a link to one, and the Router's state that
# belongs to each. Sourced by deploy/install, after prerequisites.sh.

# So many stay: the current one, the one of before, and one more.
kept_versions=3

# Where everything is; $1 goes before each, and is empty for the machine itself.
# shellcheck disable=SC2034 # deploy/install uses them
use_folders() {
  opt=$1/opt/antiphon
  versions=$opt/versions
  etc=$1/etc/antiphon
  credentials=$1/etc/credstore
  media=$1/srv/antiphon/media
  units=$1/usr/local/lib/systemd/system
  sysusers=$1/usr/local/lib/sysusers.d/antiphon.conf
  # systemd keeps a dynamic user's folders below `private`, and links to them.
  state=$1/var/lib/private/antiphon
  state_link=$1/var/lib/antiphon
  cache=$1/var/cache/private/antiphon
  cache_link=$1/var/cache/antiphon
  backups=$1/var/backups/antiphon
}

# The version that `current` or `previous` stands for; nothing where there is none.
version_of() {
  local target
  if target=$(readlink "$opt/$1"); then printf '%s\n' "${target##*/}"; fi
}

# Moves what was put together to its place below the name $version; where another one has that name, with a number.
adopt_version() {
  local staged=$1 name=$version number=1
  while [[ -e $versions/$name ]]; do
    if diff -rq "$staged" "$versions/$name" > /dev/null; then
      rm -rf "$staged"
      version=$name
      return
    fi
    ((++number))
    name=$version+$number
  done
  version=$name
  mv -T "$staged" "$versions/$version"
  # The order in which versions came.
  touch "$versions/$version"
}

# A link is replaced in one step: at no moment is there none, or one to half of something.
point() {
  ln -sfn "versions/$2" "$opt/.$1.new"
  mv -T "$opt/.$1.new" "$opt/$1"
}

# Makes another version the current one, for both processes at once.
switch_to() {
  local before
  before=$(version_of current)
  [[ -z $before ]] || point previous "$before"
  point current "$1"
}

# The units of the current version become systemd's.
place_units() {
  local unit
  mkdir -p "$units" "${sysusers%/*}"
  remove_units
  for unit in "$opt"/current/systemd/*.{service,target}; do
    install -m 0644 "$unit" "$units/${unit##*/}"
  done
  install -m 0644 "$opt/current/systemd/antiphon-sysusers.conf" "$sysusers"
}

remove_units() { rm -f "$units"/antiphon-{engine,router,bot}.service "$units/antiphon.target" "$sysusers"; }

# Copies the Router's state, which must be stopped, as that which belongs to version $1.
save_state() {
  local copy=$backups/$1
  [[ -e $state/router.sqlite ]] || return 0
  # With what may not have been merged into the file yet.
  rm -rf "$copy.new" \
    && mkdir -p "$copy.new" \
    && chmod 0700 "$backups" "$copy.new" \
    && cp -a "$state"/router.sqlite* "$copy.new/" \
    && rm -rf "$copy" \
    && mv -T "$copy.new" "$copy"
}

# Whether a version that left the second state can read the first: it knows every change of form that the first has
# gone through.
can_read() {
  python3 - "$1/router.sqlite" "$2/router.sqlite" << 'END'
import sqlite3, sys
one, other = (
    {name for (name,) in sqlite3.connect(path).execute("SELECT identifier FROM grdb_migrations")}
    for path in sys.argv[1:]
)
sys.exit(0 if one <= other else 1)
END
}

# Gives version $2 a state that it can read, after $1: the one that is there where it can, or else its own of before.
restore_state() {
  local from=$backups/$1 to=$backups/$2
  [[ -e $from ]] || return 0
  if [[ ! -e $to ]]; then
    say "there is no copy of a state of $2, so the one of $1 stays; where $2 refuses it, move $state away"
    return
  fi
  if can_read "$from" "$to"; then
    say "$2 reads the state that $1 leaves: nothing is lost"
    return
  fi
  rm -f "$state"/router.sqlite* \
    && cp -a "$to"/router.sqlite* "$state/" \
    && chown --reference="$state" "$state"/router.sqlite* || return
  say "$2 cannot read the state that $1 leaves, and gets its own back, of $(date -r "$to" '+%F %T').
  What was queued, played and delivered since is lost to it; it is kept in $from."
}

# Removes the versions that came first, and their states; never the current one nor the one of before.
forget_old_versions() {
  local folder name count=0
  while IFS= read -r folder; do
    name=${folder##*/}
    ((++count > kept_versions)) || continue
    [[ $name != "$(version_of current)" && $name != "$(version_of previous)" ]] || continue
    rm -rf "$folder" "${backups:?}/$name"
  done < <(find "$versions" -mindepth 1 -maxdepth 1 -type d ! -name '.*' -printf '%T@ %p\n' | sort -rn | cut -d ' ' -f 2-)
}
