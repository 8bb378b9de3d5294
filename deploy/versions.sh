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

# What follows is also called where errexit is off (`… || fail`): each says by itself that it failed.

# A link is replaced in one step: at no moment is there none, or one to half of something. Without a version it goes.
point() {
  if [[ -z $2 ]]; then
    rm -f "$opt/$1"
    return 0
  fi
  ln -sfn "versions/$2" "$opt/.$1.new" && mv -T "$opt/.$1.new" "$opt/$1"
}

# Makes another version the current one, for both processes at once.
switch_to() {
  local before
  before=$(version_of current)
  [[ -z $before ]] || point previous "$before" || return
  point current "$1"
}

# Puts the file $1 to $2, whole or not at all.
place() { install -m 0644 "$1" "$2.new" && mv -T "$2.new" "$2"; }

# The units of the current version become systemd's.
place_units() {
  local unit
  mkdir -p "$units" "${sysusers%/*}" || return
  for unit in "$opt"/current/systemd/*.{service,target}; do
    place "$unit" "$units/${unit##*/}" || return
  done
  place "$opt/current/systemd/antiphon-sysusers.conf" "$sysusers"
}

remove_units() { rm -f "$units"/antiphon-{engine,router,bot}.service "$units/antiphon.target" "$sysusers"; }

# What a state is: these files and no others. What else is in the service's folder may be anything.
state_names=(router.sqlite router.sqlite-wal router.sqlite-shm)

# Runs a command as the user to whom the state belongs, who may read it, and nothing of anybody else's.
as_owner() {
  if ((EUID == 0)); then
    setpriv --reuid="$(stat -c %u "$state")" --regid="$(stat -c %g "$state")" --clear-groups --no-new-privs -- "$@"
  else
    "$@"
  fi
}

# As `as_owner`, and never as root: for SQLite, which reads what the service has written.
as_nobody() {
  local user
  if ((EUID == 0)); then
    user=$(stat -c %u "$state")
    ((user != 0)) || user=65534
    setpriv --reuid="$user" --regid="$user" --clear-groups --no-new-privs -- "$@"
  else
    "$@"
  fi
}

# Says so where the state is not made of plain files: the Router's user can put links, pipes and folders there, and
# what root does to those it does to what they stand for.
check_state() {
  local name file
  for name in "${state_names[@]}"; do
    file=$state/$name
    [[ -e $file || -L $file ]] || continue
    [[ -f $file && ! -L $file && $(stat -c %h "$file") == 1 ]] && continue
    say "$file is no plain file with one name (it is: $(stat -c '%F, %h names' "$file")), and no Router makes it so.
  Nothing was done with it. Look at who did, and move it away."
    return 1
  done
}

# Copies the Router's state, which must be stopped, as that which belongs to version $1. A good copy is not given up
# for a damaged state.
save_state() {
  local copy=$backups/$1 name
  [[ -e $state/router.sqlite || -L $state/router.sqlite ]] || return 0
  check_state || return
  # With what may not have been merged into the file yet.
  rm -rf "$copy.new" \
    && mkdir -p "$copy.new" \
    && chmod 0700 "$backups" "$copy.new" || return
  for name in "${state_names[@]}"; do
    [[ -e $state/$name ]] || continue
    # From within: the folder above is root's alone.
    (cd -P -- "$state" && umask 077 && as_owner cat "./$name" > "$copy.new/$name") || return
  done
  if [[ -e $copy ]] && ! is_whole "$copy.new"; then
    rm -rf "$copy.new"
    say "$state/router.sqlite is damaged, and would replace the copy in $copy.
  Put a copy back as docs/services.md tells, or move the damaged files away."
    return 1
  fi
  rm -rf "$copy" && mv -T "$copy.new" "$copy"
}

# Copies what there is of a state from the folder $1, which is root's, to $2.
copy_state() {
  local name files=()
  for name in "${state_names[@]}"; do
    [[ ! -f $1/$name || -L $1/$name ]] || files+=("$1/$name")
  done
  cp --no-dereference "${files[@]}" "$2/"
}

# Asks SQLite about the state in the folder $1: `whole`, or the `changes` of form that it has gone through, one a
# line. It works on a copy, as nobody, since a file that was made to can do anything to who reads it.
ask_state() {
  local scratch status=0
  scratch=$(mktemp -d) || return 1
  if copy_state "$1" "$scratch" && { ((EUID != 0)) || chmod 0777 "$scratch"; } && chmod a+rw "$scratch"/*; then
    (cd -- "$scratch" && as_nobody env -i PATH="$PATH" timeout 300 python3 -I - "$1/router.sqlite" "$2") << 'END' || status=$?
import sqlite3, sys
path, question = sys.argv[1:]
try:
    database = sqlite3.connect("router.sqlite")
    if question == "whole":
        sys.exit(0 if database.execute("PRAGMA quick_check(1)").fetchone() == ("ok",) else 1)
    for name in sorted({repr(name) for (name,) in database.execute("SELECT identifier FROM grdb_migrations")}):
        print(name)
except sqlite3.Error as error:
    sys.exit(f"{path}: {error}")
END
  else
    status=1
  fi
  rm -rf "$scratch"
  return "$status"
}

# Whether the state in a folder can be read from end to end.
is_whole() { ask_state "$1" whole; }

# Whether a version that left the second state can read the first: it knows every change of form that the first has
# gone through. 1: it cannot. 2: that cannot be told.
can_read() {
  local first second
  first=$(ask_state "$1" changes) && second=$(ask_state "$2" changes) || return 2
  [[ -z $(LC_ALL=C comm -23 <(printf '%s\n' "$first" | LC_ALL=C sort) <(printf '%s\n' "$second" | LC_ALL=C sort)) ]]
}

# Replaces the Router's state by the copy in the folder $1, once that is here as a whole. What stands in its place is
# taken away by name, whatever it is, and never followed.
replace_state() {
  local new=$state/.new name
  if ! { rm -rf "$new" \
    && mkdir -m 0700 "$new" \
    && copy_state "$1" "$new" \
    && chown -h --reference="$state" "$new"/*; }; then
    rm -rf "$new"
    return 1
  fi
  rm -rf "$state"/router.sqlite-{wal,shm,journal} || return
  for name in "${state_names[@]}"; do
    [[ ! -e $new/$name ]] || { rm -rf "${state:?}/$name" && mv -T "$new/$name" "$state/$name"; } || return
  done
  rmdir "$new"
}

# Gives version $2 a state that it can read, after $1: the one that is there where it can, or else its own of before.
restore_state() {
  local from=$backups/$1 to=$backups/$2 answer=0
  [[ -e $from ]] || return 0
  if [[ ! -e $to ]]; then
    say "there is no copy of a state of $2, so the one of $1 stays; where $2 refuses it, move $state away"
    return 0
  fi
  can_read "$from" "$to" || answer=$?
  case $answer in
    0) say "$2 reads the state that $1 leaves: nothing is lost" ;;
    1)
      replace_state "$to" || return
      say "$2 cannot read the state that $1 leaves, and gets its own back, of $(date -r "$to" '+%F %T').
  What was queued, played and delivered since is lost to it; it is kept in $from."
      ;;
    *) return 1 ;;
  esac
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
