#!/bin/sh
# Installs Klatch and its database from Klatch's own package repository: on Ubuntu from 14.04 on, and on Debian.
# `sh install.sh --help` lists the options, and `sh install.sh --dry-run` prints the steps on this machine.
#
# In the source tree this is a template: `make install-sh` replaces the names between @ signs.
#
# Everything is a function, and the last line is a group, which a shell runs only after it has read all of it. So a
# shell runs nothing of an incomplete download. Plain POSIX sh, for dash and busybox; the script needs no download
# program, since apt downloads.

VERSION='@VERSION@'
REPO='@REPO_URL@'
KEY_FINGERPRINT='@KEY_FINGERPRINT@'
# When this script was made, in seconds since 1970: an earlier time on the clock is wrong.
MADE_S='@MADE_S@'

# The files that it leaves.
KEYRING_SIGNED_BY=/usr/share/keyrings/klatch-archive-keyring.gpg
KEYRING_TRUSTED=/etc/apt/trusted.gpg.d/klatch-archive-keyring.gpg
LIST=/etc/apt/sources.list.d/klatch.list
LOG=/var/log/klatch-install.log

# By its path: busybox sh prefers a dpkg of its own to that of the system.
dpkg=/usr/bin/dpkg

# The oldest PostgreSQL that Klatch works with.
MIN_POSTGRESQL=11
# Space beyond that of the packages: the package database, logs, a first start.
SPARE_KIB=32768
LOCK_WAIT_S=300
LOCK_RETRY_S=3
SHOWN_LOG_LINES=12

# Exit codes; docs/install-script.md explains them.
FAILED=1 USAGE=64 BAD_SIGNATURE=65 NO_SUCH_VERSION=66 UNREACHABLE=69 WRONG_SYSTEM=71 NO_APT=72 NO_SPACE=73 LOCKED=75
NOT_ROOT=77 APT_CONFIGURATION=78

print_key() {
  cat <<'KEY'
@KEY@
KEY
}

print_help() {
  cat <<HELP
Installs Klatch and its database on Ubuntu (14.04 or newer) and Debian, for x86-64, and configures nothing:
\`sudo klatch setup\` does that afterwards. Can be run again at any time, also after it was interrupted.

usage: sudo sh install.sh [options]

  --embedded       take klatch-postgresql (PostgreSQL for Klatch alone, run by Klatch itself) and not the PostgreSQL
                   of this system; without this option it is taken where the system offers none of version $MIN_POSTGRESQL or newer
  --no-database    install no database: there is one elsewhere
  --version X      install this version and not the newest; later upgrades take the newest
  --repo URL       the package repository${REPO:+ (default: $REPO)}
  --wait SECONDS   how long to wait for another installation on this machine to end (default: $LOCK_WAIT_S)
  --dry-run        say what would be done, and change nothing; works without root
  --help           this text

This is the script of Klatch $VERSION. It asks nothing, and writes what apt says to $LOG.
The packages are signed with the key $KEY_FINGERPRINT.
HELP
}

say() { printf '%s\n' "$*"; }

# fail STATUS SENTENCE...: each argument is a line.
fail() {
  status=$1
  shift
  printf 'install.sh: %s\n' "$1" >&2
  shift
  for line in "$@"; do printf '  %s\n' "$line" >&2; done
  exit "$status"
}

# ---- options and the machine ----

read_options() {
  dry_run=no database=auto wanted='' wait_s=$LOCK_WAIT_S
  while [ $# -gt 0 ]; do
    option=$1
    shift
    case $option in
      --version=* | --repo=* | --wait=*)
        # As two words, so that the code below handles one form only.
        set -- "${option#*=}" "$@"
        option=${option%%=*}
        ;;
    esac
    case $option in
      --version | --repo | --wait)
        [ -n "${1:-}" ] || fail $USAGE "the option $option lacks its value; --help lists the options"
        ;;
    esac
    case $option in
      --embedded | --no-database)
        [ "$database" = auto ] || [ "$database" = "${option#--}" ] ||
          fail $USAGE '--embedded and --no-database exclude each other'
        database=${option#--}
        ;;
      --version) wanted=$1 && shift ;;
      --repo) REPO=$1 && shift ;;
      --wait) wait_s=$1 && shift ;;
      --dry-run) dry_run=yes ;;
      --help | -h)
        print_help
        exit 0
        ;;
      *) fail $USAGE "there is no option $option; --help lists the options" ;;
    esac
  done
  check_options
}

check_options() {
  case $KEY_FINGERPRINT in
    @*) fail $USAGE "this is the template out of the source tree, without a key: 'make install-sh' makes the script" ;;
  esac
  case $wait_s in
    '' | *[!0-9]* | ??????*) fail $USAGE "--wait takes a number of seconds, not \"$wait_s\"" ;;
  esac
  case $wanted in
    *[!0-9A-Za-z.+~-]* | -*) fail $USAGE "--version takes a version such as $VERSION, not \"$wanted\"" ;;
  esac
  while [ "$REPO" != "${REPO%/}" ]; do REPO=${REPO%/}; done
  case $REPO in
    '') fail $USAGE 'this script was made without the address of a repository: give it with --repo URL' ;;
    *@*) fail $USAGE 'the address of the repository must hold no user and password: apt takes them from /etc/apt/auth.conf' ;;
    *[!0-9A-Za-z.:/_~%+,=-]*) fail $USAGE 'the address of the repository holds a character that apt does not take' ;;
    http://?* | https://?* | file:/?*) ;;
    *) fail $USAGE "--repo takes an address that begins with http://, https:// or file:/, not \"$REPO\"" ;;
  esac
}

check_system() {
  zip='the release zip (klatch-<version>-linux-x64.zip) runs without being installed'
  [ "$(uname -s)" = Linux ] || fail $WRONG_SYSTEM "Klatch runs on Linux; this is $(uname -s)"
  case $(uname -m) in
    x86_64 | amd64) ;;
    *) fail $WRONG_SYSTEM "Klatch is built for x86-64; this machine is $(uname -m)" ;;
  esac
  for tool in apt-get apt-cache $dpkg; do
    command -v "$tool" >/dev/null 2>&1 || fail $NO_APT "there is no $tool here, so packages cannot be installed; $zip"
  done
  architecture=$($dpkg --print-architecture)
  [ "$architecture" = amd64 ] ||
    fail $WRONG_SYSTEM "the packages of this system are for $architecture, Klatch's are for amd64; $zip"
  command -v base64 >/dev/null 2>&1 || fail $WRONG_SYSTEM 'there is no base64 here (package coreutils), to unpack the key with'
  apt_version=$(apt-get --version 2>/dev/null | sed -n '1s/^apt \([^ ]*\).*/\1/p')
  case $REPO in
    https:*)
      [ -e /usr/lib/apt/methods/https ] || fail $UNREACHABLE \
        "apt $apt_version cannot read https:// here; take the http:// address (packages are signed), or install apt-transport-https"
      ;;
  esac
  if $dpkg --compare-versions "${apt_version:-0}" ge 1.1; then
    keyring=$KEYRING_SIGNED_BY
    source_line="deb [arch=amd64 signed-by=$keyring] $REPO stable main"
  else
    # It would not understand signed-by.
    keyring=$KEYRING_TRUSTED
    source_line="deb [arch=amd64] $REPO stable main"
  fi
  [ "$dry_run" = yes ] || [ "$(id -u)" = 0 ] ||
    fail $NOT_ROOT 'installing needs root: run it with sudo, or with --dry-run to see what it would do'
}

# The script reads apt's messages below, so they have to be English. Everything else keeps the language of the caller:
# the cluster of the package postgresql takes its encoding from it permanently, and without a language that is
# SQL_ASCII.
choose_locale() {
  wanted_locale=${LC_ALL:-${LC_CTYPE:-${LANG:-C}}}
  unset LC_ALL LC_CTYPE LC_COLLATE LC_TIME LC_NUMERIC LC_MONETARY LC_PAPER LC_NAME LC_ADDRESS LC_TELEPHONE
  unset LC_MEASUREMENT LC_IDENTIFICATION LANGUAGE
  case $wanted_locale in C | POSIX) wanted_locale=C.UTF-8 ;; esac
  for LANG in "$wanted_locale" C.UTF-8 C; do
    # It complains of a locale that this machine lacks, but exits 0.
    [ -n "$(LC_ALL=$LANG locale charmap 2>&1 >/dev/null)" ] || break
  done
  LC_MESSAGES=C
  export LANG LC_MESSAGES
}

# ---- working ----

make_workplace() {
  # Not in $TMPDIR: apt reads it as the user _apt.
  work=$(mktemp -d /tmp/klatch-install.XXXXXX 2>/dev/null) || fail $NO_SPACE 'no folder can be made in /tmp: it is full or read-only'
  trap 'rm -rf "$work"' EXIT
  trap 'stop_on INT 130' INT
  trap 'stop_on HUP 129' HUP
  trap 'stop_on TERM 143' TERM
  chmod 755 "$work"
  output=$work/output
  [ "$dry_run" = no ] || LOG=$work/log
  mv -f "$LOG" "$LOG.1" 2>/dev/null
  (umask 027 && say "install.sh of Klatch $VERSION, $(date -u '+%Y-%m-%d %H:%M:%S') UTC" >"$LOG") 2>/dev/null ||
    cannot_write "$LOG"
}

cannot_write() { fail $NO_SPACE "$1 cannot be written: the disk is full or read-only" "$(free_space)"; }

# shellcheck disable=SC2317 # Called by traps.
stop_on() {
  printf 'install.sh: stopped by %s. Run it again: it goes on from where it was.\n' "$1" >&2
  exit "$2"
}

# Runs a command with its output in $output and in the log. Retries for up to $wait_s while another program holds a lock
# of apt or dpkg, as the nightly upgrade of Ubuntu does for minutes.
logged() {
  waited_s=0
  while :; do
    say "+ $*" >>"$LOG"
    "$@" >"$output" 2>&1 </dev/null
    result=$?
    cat "$output" >>"$LOG"
    [ $result -ne 0 ] && is_said 'Could not get lock|Unable to lock|Unable to acquire|(is|was) locked by another' || return $result
    is_said 'Permission denied|Read-only file system' && return $result
    [ $waited_s -lt "$wait_s" ] || fail $LOCKED \
      "another program has been installing packages for more than $wait_s seconds; run this again when it has ended" "$(apt_reason)"
    [ $waited_s -gt 0 ] || say "  another program is installing packages; waiting for it, up to $wait_s seconds ..."
    sleep $LOCK_RETRY_S
    waited_s=$((waited_s + LOCK_RETRY_S))
  done
}

# Whether the output of the last command matches an extended regular expression.
is_said() { grep -Eq "$1" "$output"; }

# Whether apt or dpkg reported such an error. It ignores their other output, and the addresses in it: a port, a size or
# a rate may contain 404, and names of packages gnutls.
is_complaint() {
  awk '/^[^ ]/ { told = /^(E|W|Err|WARNING|dpkg[a-z-]*)[: ]/ } told' "$output" |
    sed "s|[a-z][a-z]*:/[^ ]*||g; s|${work}[^ ]*||g" | grep -Eq "$1"
}

# The most informative line of the last command's output; its last errors only summarise.
apt_reason() {
  summary='Some index files|Sub-process /usr/bin/dpkg|list of sources could not be read|Errors were encountered'
  reason=$(
    grep -E 'GPG error' "$output" || grep -E '^(E|dpkg): ?' "$output" | grep -Ev "$summary" ||
      grep -E '^W: ' "$output" | grep -Ev "$summary" || grep -E '^(E|Err)' "$output" || tail -n 1 "$output"
  )
  say "apt said: $(say "$reason" | head -n 1)"
}

# Exits after a failed step, with the sentence for apt's output. $1: the failed step.
explain() {
  if is_said 'No space left on device|enough free space|Disk quota exceeded' || is_full; then
    fail $NO_SPACE "$1: the disk is full. Make room and run this again." "$(apt_reason)" "$(free_space)"
  elif is_said 'Read-only file system'; then
    fail $NO_SPACE "$1: a file system of this machine is read-only." "$(apt_reason)"
  elif is_complaint 'network require authentication'; then
    fail $UNREACHABLE "$1: something else answered at $REPO, such as the login page of a network." "$(apt_reason)"
  elif is_complaint 'SSL|TLS|gnutls|No system certificates|ertificate verif'; then
    fail $UNREACHABLE "$1: TLS does not work with it. The http:// address does as well, since packages are signed." "$(apt_reason)"
  elif is_complaint 'not valid yet|Not live until|is expired|has expired'; then
    fail $BAD_SIGNATURE "$1: by the clock of this machine ($(date)) its signature is not valid." "$(apt_reason)"
  elif is_complaint 'NO_PUBKEY|Missing key|not signed by|No good signature'; then
    refuse_signature "$1: it is not signed with the key that this script brings ($KEY_FINGERPRINT)."
  elif is_complaint 'GPG error|BADSIG|KEYSIG|KEYEXPIRED|not signed|invalid signature|signatures? (was|were|could)|[Vv]erif|--force-yes|authenticated'; then
    refuse_signature "$1: its signature is wrong."
  elif is_complaint 'Hash Sum mismatch|unexpected size|Hashes of|does not match'; then
    refuse_signature "$1: a file of it is not the one that was signed."
  elif is_complaint 'Failed to fetch|Unable to fetch|Could not (resolve|connect)|Cannot initiate|Unable to connect|does not have a Release|404 +Not Found|timed out'; then
    fail $UNREACHABLE "$1: $REPO cannot be reached, or is no package repository." "$(apt_reason)"
  elif is_complaint 'Malformed|list of sources could not be read|Conflicting values|Syntax error'; then
    fail $APT_CONFIGURATION "$1: the configuration of apt on this machine is in the way; mend it and run this again." "$(apt_reason)"
  fi
  printf 'install.sh: %s. The end of %s:\n' "$1" "$LOG" >&2
  tail -n $SHOWN_LOG_LINES "$LOG" | sed 's/^/  | /' >&2
  [ "$dry_run" = no ] || exit $FAILED
  fail $FAILED 'run this again when that is mended; nothing that was done has to be taken back'
}

refuse_signature() {
  clock=''
  [ "$(date +%s)" -ge "$MADE_S" ] || clock="The clock of this machine is wrong ($(date)): that may be the reason."
  fail $BAD_SIGNATURE "$1 Nothing of it was installed." "$(apt_reason)" \
    'Try again in some minutes. If it stays so, tell the publisher; if the key was changed, get a new install.sh.' ${clock:+"$clock"}
}

# Whether a file system that apt writes to has less than a mebibyte left; apt does not always report a full one.
is_full() {
  for folder in /usr /etc /tmp /var/cache/apt /var/lib/dpkg /var/log; do
    [ "$(free_kib $folder)" -ge 1024 ] || return 0
  done
  return 1
}

free_kib() {
  kib=$(df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $4 }')
  say "${kib:-999999999}"
}

free_space() {
  say "free: $(($(free_kib /usr) / 1024)) MiB in /usr, $(($(free_kib /var/cache/apt) / 1024)) MiB in /var/cache/apt, $(($(free_kib /tmp) / 1024)) MiB in /tmp"
}

# A step that changes something: it runs, or a dry run only prints it.
change() {
  if [ "$dry_run" = yes ]; then
    say "  $*"
  else
    logged "$@"
  fi
}

# put FILE TARGET WHAT: writes a file beside its target and renames it, so that apt never reads half of it.
put() {
  cmp -s "$1" "$2" && return 0
  if [ "$dry_run" = yes ]; then
    say "  write $2: $3"
    return 0
  fi
  # apt ignores names that begin with a dot. Another run of this script may write at the same time.
  beside=${2%/*}/.${2##*/}.$$
  if mkdir -p "${2%/*}" && cp "$1" "$beside" && chmod 644 "$beside" && mv -f "$beside" "$2"; then return 0; fi 2>>"$LOG"
  rm -f "$beside"
  take_repository_back
  cannot_write "$2"
}

# ---- the repository ----

# Errors of `apt-get update` after which it still exits 0.
UPDATE_FAILED='^(W|E|Err)[: ].*(GPG error|Failed to fetch|not signed|Hash Sum|could not be|couldn.t be)'

# Reads the repository with a separate state of apt. It finds a wrong address, signature or version before the script
# changes this machine.
probe() {
  say "Looking at $REPO ..."
  make_probe_state || cannot_write "$work"
  update_index -c "$work/apt.conf" || explain 'the repository was not added'
  for index in "$work"/state/lists/*_Packages*; do
    [ -e "$index" ] || explain 'the repository was not added'
  done
  for signature in "$work"/state/lists/*_InRelease "$work"/state/lists/*_Release.gpg; do
    [ -e "$signature" ] && return 0
  done
  # apt before 1.1 accepts it without a message.
  say 'W: the repository is not signed' >>"$output"
  explain 'the repository was not added'
}

make_probe_state() {
  mkdir -p "$work/state/lists/partial" "$work/cache/archives/partial" "$work/keys" "$work/none" &&
    print_key | base64 -d >"$work/keys/klatch.gpg" && [ -s "$work/keys/klatch.gpg" ] &&
    say "$source_line" | sed "s|signed-by=[^]]*|signed-by=$work/keys/klatch.gpg|" >"$work/klatch.list" &&
    write_probe_configuration && chmod -R go+rX "$work"
} 2>>"$LOG"

write_probe_configuration() {
  cat >"$work/apt.conf" <<CONF
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State "$work/state";
Dir::State::lists "$work/state/lists";
Dir::State::status "/var/lib/dpkg/status";
Dir::Cache "$work/cache";
Dir::Etc::sourcelist "$work/klatch.list";
Dir::Etc::sourceparts "$work/none";
Dir::Etc::trusted "$work/none/trusted.gpg";
Dir::Etc::trustedparts "$work/keys";
Acquire::Languages "none";
Acquire::Retries "1";
Acquire::http::Timeout "20";
Acquire::https::Timeout "20";
CONF
}

# Runs `apt-get update` with these options, for the repository of Klatch only. Retries once where the fetched files do
# not match: apt before 1.2 fetches the index by a name that may have a newer one by then.
update_index() {
  update_once "$@" && return 0
  is_said 'Hash Sum mismatch|unexpected size' || return 1
  sleep $LOCK_RETRY_S
  update_once "$@"
}

update_once() {
  logged apt-get "$@" -q update || return 1
  ! is_said "$UPDATE_FAILED"
}

add_repository() {
  say 'Adding the repository and its key ...'
  for file in "$keyring" "$LIST"; do
    [ ! -e "$file" ] || cp -p "$file" "$work/${file##*/}.before" || cannot_write "$work"
  done
  say "$source_line" >"$work/list" || cannot_write "$work"
  put "$work/keys/klatch.gpg" "$keyring" "the public key $KEY_FINGERPRINT"
  put "$work/list" "$LIST" "$source_line"
  set -- -o "Dir::Etc::sourcelist=$LIST" -o Dir::Etc::sourceparts=- -o APT::Get::List-Cleanup=0
  if [ "$dry_run" = yes ]; then
    change apt-get "$@" -q update
  elif ! update_index "$@" || ! logged apt-cache policy klatch || ! is_said '^  Candidate: [^(]'; then
    take_repository_back
    explain 'the repository was not added'
  fi
  # apt trusts the key that a run under an older apt left for every repository of this machine.
  if [ "$keyring" != $KEYRING_TRUSTED ] && [ -e $KEYRING_TRUSTED ]; then change rm -f $KEYRING_TRUSTED; fi
}

# So that a later `apt-get update` of the user has the same state as before.
take_repository_back() {
  for file in "$keyring" "$LIST"; do
    if [ -e "$work/${file##*/}.before" ]; then
      cp -p "$work/${file##*/}.before" "$file"
    else
      rm -f "$file"
    fi
  done 2>>"$LOG"
}

# ---- what to install ----

# The version of an installed and working package, or nothing.
installed_version() { dpkg-query -W -f='${Status}|${Version}\n' "$1" 2>/dev/null | sed -n 's/^[a-z]* ok installed|//p'; }

# The versions of a package in the repository, the newest first.
offered_versions() { apt-cache -c "$work/apt.conf" madison "$1" 2>>"$LOG" | awk -F ' *[|] *' '{ print $2 }'; }

choose_version() {
  installed=$(installed_version klatch)
  offered=$(offered_versions klatch)
  [ -n "$offered" ] || fail $NO_SUCH_VERSION "$REPO holds no klatch for this system"
  if [ -z "$wanted" ]; then
    version=$(apt-cache -c "$work/apt.conf" policy klatch 2>>"$LOG" | sed -n 's/^  Candidate: //p')
    case $version in
      '' | '('*) fail $APT_CONFIGURATION 'the preferences of apt on this machine (/etc/apt/preferences*) keep klatch out' ;;
    esac
    return
  fi
  version=''
  for each in $offered; do
    # With or without the revision of the package.
    case $each in "$wanted" | "$wanted"-*) version=$each && break ;; esac
  done
  [ -n "$version" ] || fail $NO_SUCH_VERSION "$REPO does not have klatch $wanted; it has $(printf '%s' "$offered" | tr '\n' ' ')"
  if [ -n "$installed" ] && $dpkg --compare-versions "$installed" gt "$version"; then
    fail $NO_SUCH_VERSION "klatch $installed is installed, which is newer than $version: nothing was done" \
      "To go back, when the database allows it (docs/install.md tells): sudo apt-get install klatch=$version"
  fi
}

# Sets $database: embedded, system (the package postgresql), present (there is a server), kept (Klatch is configured),
# no-database, or unknown (in a dry run that would have to update the package lists first).
choose_database() {
  [ "$database" = auto ] || return 0
  if is_configured; then
    database=kept reason='Klatch is configured, with the one that it has'
  elif [ -n "$(installed_version klatch-postgresql)" ]; then
    database=embedded reason='klatch-postgresql, which is installed'
  elif find_server; then
    database=present reason="there is PostgreSQL $major"
  else
    choose_offered
  fi
}

is_configured() {
  [ -n "$(installed_version klatch)" ] || return 1
  [ "$dry_run" = no ] || [ -r /etc/klatch/server.conf ] ||
    say 'This user cannot read /etc/klatch/server.conf. If Klatch is configured, nothing is done about a database.'
  /usr/bin/klatch config check --config /etc/klatch/server.conf >/dev/null 2>&1 </dev/null
}

# Sets $major to that of the newest PostgreSQL that is installed or running, if Klatch supports it.
find_server() {
  major=0
  for program in /usr/lib/postgresql/*/bin/postgres; do
    [ -x "$program" ] || continue
    program=${program#/usr/lib/postgresql/}
    take_major "${program%%/*}"
  done
  for lock in /var/run/postgresql/.s.PGSQL.*.lock; do
    [ -f "$lock" ] || continue
    # Its second line is the folder of the cluster.
    file=$(sed -n 2p "$lock")/PG_VERSION
    if [ -f "$file" ]; then take_major "$(head -n 1 "$file")"; fi
  done
  [ "$major" -ge $MIN_POSTGRESQL ]
}

take_major() {
  number=${1#*:}
  number=${number%%[!0-9]*}
  if [ "${number:-0}" -gt "$major" ]; then major=$number; fi
}

choose_offered() {
  find_offered
  if [ -z "$candidate" ] && [ "$dry_run" = yes ]; then
    database=unknown
    reason="that of the system if it offers $MIN_POSTGRESQL or newer; this machine has no package lists to tell from"
    return
  fi
  if [ -z "$candidate" ]; then
    refresh_everything
    find_offered
  fi
  major=0
  take_major "$candidate"
  if [ "$major" -ge $MIN_POSTGRESQL ]; then
    database=system reason="PostgreSQL $major of this system"
  else
    database=embedded reason="klatch-postgresql; this system offers ${candidate:-no PostgreSQL}${candidate:+, which is too old}"
  fi
}

# Sets $candidate to the version of postgresql that apt would install, if there is one.
find_offered() {
  logged apt-cache policy postgresql || explain 'the package lists of this system cannot be read'
  candidate=$(sed -n 's/^  Candidate: //p' "$output")
  case $candidate in '('*) candidate='' ;; esac
}

# The archive of an old distribution may be gone: that is no reason to fail.
refreshed=no
refresh_everything() {
  refreshed=yes
  say 'Refreshing the package lists of this system ...'
  logged apt-get -q -o Acquire::http::Timeout=30 -o Acquire::Retries=0 update || :
}

check_space() {
  packages_kib=0 archives_kib=0
  [ "$installed" = "$version" ] || add_size "klatch=$version"
  if [ "$database" = embedded ] && [ -z "$(installed_version klatch-postgresql)" ]; then
    [ -n "$(offered_versions klatch-postgresql)" ] || fail $NO_SUCH_VERSION "$REPO holds no klatch-postgresql for this system"
    add_size klatch-postgresql
  fi
  [ $packages_kib -gt 0 ] || return 0
  packages_kib=$((packages_kib + SPARE_KIB))
  if [ "$(mount_of /usr)" = "$(mount_of /var/cache/apt)" ]; then
    packages_kib=$((packages_kib + archives_kib))
  elif [ "$(free_kib /var/cache/apt)" -lt $archives_kib ]; then
    fail $NO_SPACE "the disk is full: $((archives_kib / 1024 + 1)) MiB are needed in /var/cache/apt" "$(free_space)"
  fi
  [ "$(free_kib /usr)" -ge $packages_kib ] ||
    fail $NO_SPACE "the disk is full: $((packages_kib / 1024 + 1)) MiB are needed in /usr" "$(free_space)"
}

add_size() {
  # shellcheck disable=SC2046 # Two numbers, or nothing.
  set -- $(apt-cache -c "$work/apt.conf" --no-all-versions show "$1" 2>>"$LOG" |
    awk '/^Size: / { size = $2 } /^Installed-Size: / { kib = $2 } END { print kib + 0, int(size / 1024) + 1 }')
  packages_kib=$((packages_kib + ${1:-0}))
  archives_kib=$((archives_kib + ${2:-0}))
}

mount_of() { df -Pk "$1" 2>/dev/null | awk 'NR == 2 { print $6 }'; }

# ---- installing ----

# Repairs the state that a kill during dpkg leaves; apt-get refuses to work before that.
finish_interrupted() {
  for update in /var/lib/dpkg/updates/[0-9]*; do
    [ -e "$update" ] || return 0
    say 'An installation on this machine was cut off: finishing it ...'
    change $dpkg --configure -a --force-confdef --force-confold || explain 'the installation that was cut off cannot be finished'
    return 0
  done
}

# Keeps the user's changes to files of packages; asks nothing.
apt_install() {
  change apt-get -y -q --no-install-recommends -o Dpkg::Use-Pty=0 -o Dpkg::Options::=--force-confdef \
    -o Dpkg::Options::=--force-confold -o Acquire::Retries=3 -o Acquire::http::Timeout=60 install "$@"
}

# The distribution's package, if that is the chosen database.
install_database() {
  case $database in
    kept | present) say "Installing no database: $reason." ;;
    system)
      say "Installing the database: $reason ..."
      install_postgresql && return 0
      say "  this system cannot deliver it ($(apt_reason))"
      database=embedded reason=klatch-postgresql
      check_space
      ;;
    unknown)
      say '  apt-get update'
      say '  where that brought a PostgreSQL that is new enough:'
      apt_install postgresql
      ;;
  esac
}

# After klatch, which it depends on: otherwise apt would install the newest klatch, where another version is requested.
install_companion() {
  case $database in
    embedded) say "Installing the database: ${reason:-klatch-postgresql} ..." ;;
    unknown) say '  where it brought none:' ;;
    *) return 0 ;;
  esac
  apt_install klatch-postgresql || explain 'klatch-postgresql was not installed'
}

# Returns 1 where the archive of the distribution cannot deliver the package; the script then uses Klatch's own.
install_postgresql() {
  apt_install postgresql && return 0
  if [ $refreshed = no ] && is_undeliverable; then
    refresh_everything
    apt_install postgresql && return 0
  fi
  is_undeliverable || explain 'postgresql was not installed'
  return 1
}

is_undeliverable() {
  ! is_said 'No space left|enough free space' &&
    is_said 'Failed to fetch|Unable to fetch|Unable to locate|no installation candidate|unmet dep|not installable'
}

install_klatch() {
  say "Installing klatch $version ..."
  apt_install "klatch${wanted:+=$version}" || explain 'klatch was not installed'
  [ "$dry_run" = no ] || return 0
  version=$(installed_version klatch)
  [ -n "$version" ] || explain 'klatch was not installed'
}

print_next() {
  sudo=''
  if command -v sudo >/dev/null 2>&1; then sudo='sudo '; fi
  say ''
  if is_configured; then
    say "Klatch $version is installed and configured. To look at it, and to control it:"
    say ''
    say "  ${sudo}service klatch status"
    say "  ${sudo}service klatch restart"
    say "  ${sudo}klatch doctor"
    return
  fi
  setup='klatch setup'
  if [ "$database" = embedded ]; then setup='klatch setup --embedded'; fi
  say "Klatch $version is installed. It does not run before it is configured. These come next:"
  say ''
  say "  ${sudo}$setup"
  say "  ${sudo}service klatch start"
  say "  ${sudo}klatch admin-link"
  say ''
  say 'The last one makes a first group. It prints the address to open in a browser, and the one to post messages to.'
}

main() {
  set -u
  umask 022
  PATH=${PATH:-/usr/bin:/bin}:/usr/local/sbin:/usr/sbin:/sbin
  DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l UCF_FORCE_CONFFOLD=1
  export PATH DEBIAN_FRONTEND NEEDRESTART_MODE UCF_FORCE_CONFFOLD
  reason=''
  read_options "$@"
  check_system
  choose_locale
  make_workplace
  probe
  choose_version
  choose_database
  check_space
  if [ "$dry_run" = yes ]; then
    say "Would install klatch $version${installed:+ (now: $installed)}. Database: ${reason:-$database}. As root, in this order:"
  fi
  finish_interrupted
  add_repository
  install_database
  install_klatch
  install_companion
  if [ "$dry_run" = yes ]; then
    say 'Nothing was changed.'
  else
    print_next
  fi
}

{
  main "$@"
  exit
}
