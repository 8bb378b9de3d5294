# shellcheck shell=bash
# A change from one version to another, which is taken back where it breaks off. Sourced by deploy/install, after
# versions.sh; it gives `start_current` and `stop_both`.
# shellcheck disable=SC2154 # what versions.sh sets

# As `save_state`; where that cannot be, everything stays as it was.
keep_state() {
  save_state "$1" && return 0
  changing=no
  start_current || true
  fail "the state could not be copied to $backups: see above. $1 goes on."
}

# From here to `changing=no`, however this ends, `put_right` brings back what is current now.
changing=no started=no
begin_change() {
  was_current=$(version_of current)
  was_previous=$(version_of previous)
  [[ -z $was_current ]] || changing=yes
}

# To another version, with a state that it can read; both are left stopped.
change_to() {
  local from
  from=$(version_of current)
  stop_both
  keep_state "$from"
  # Not before the older version is sure to come: the state would be nobody's.
  switch_to "$1" && restore_state "$from" "$1" && place_units
}

# To the version and state from before this change.
take_back() {
  if [[ $(version_of current) != "$was_current" ]]; then
    say "going back to $was_current"
    if [[ $started == yes ]]; then
      change_to "$was_current" || return
    else
      # No other version has touched the state, but it may have been replaced by that of the other version.
      switch_to "$was_current" && place_units || return
      [[ ! -e $backups/$was_current ]] || replace_state "$backups/$was_current" || return
    fi
  fi
  # Nobody wants to go back to what has failed.
  [[ $(version_of previous) == "$was_previous" ]] || point previous "$was_previous"
}

# However this ends: both are not left stopped. What it calls says `return 0` where all is well: below a trap, a bare
# `return` gives the status from before the trap.
put_right() {
  local status=$?
  trap - EXIT
  trap '' HUP INT TERM PIPE
  [[ $changing == yes ]] || exit "$status"
  changing=no
  take_back || say "the version of before could not be made current again: see above"
  if start_current; then
    say "version $(version_of current) is current${address:+: $address}"
  else
    say "$(version_of current) is current and does not become ready: see journalctl -u 'antiphon-*'"
  fi
  exit "$status"
}
trap put_right EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
