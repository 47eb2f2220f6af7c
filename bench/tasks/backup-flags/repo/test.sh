#!/bin/bash
# Runs backup.sh in a folder of its own.
here=$(cd "$(dirname "$0")" && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
cd "$place"
failures=0

check() { # what, wanted, got
    if [ "$2" != "$3" ]; then
        printf 'FAIL: %s: %q, not %q\n' "$1" "$3" "$2"
        failures=$((failures + 1))
    fi
}

backup() { bash "$here/backup.sh" "$@" 2>&1; }
code() { backup "$@" > /dev/null; echo $?; }
kept() { (cd "$1" && printf '%s,' *); }

mkdir -p plain "my photos" a.b axb
echo x > "my photos/a file.txt"

check "the first backup" "made out/plain-1.tar" "$(backup -v plain out)"
check "it succeeds quietly" "0" "$(code plain out)"
check "two are there" "plain-1.tar,plain-2.tar," "$(kept out)"

check "a folder with a space" "0" "$(code "my photos" "the backups")"
check "and its backup" "my photos-1.tar," "$(kept "the backups")"
check "with what is in it" "my photos/a file.txt" "$(tar -tf "the backups/my photos-1.tar" | grep txt)"
check "once more" "made the backups/my photos-2.tar" "$(backup -v "my photos" "the backups")"

for _ in 3 4 5 6 7 8 9 10 11; do backup plain out; done
check "numbers count, not letters" "made out/plain-12.tar" "$(backup -v plain out | head -1)"
check "the newest are kept" "0" "$(code -k 2 plain out)"
check "and no others" "plain-12.tar,plain-13.tar," "$(kept out)"

backup axb dots; backup a.b dots; backup -k 1 a.b dots
check "a dot is a dot" "a.b-2.tar,axb-1.tar," "$(kept dots)"

check "keeping none is wrong usage" "2" "$(code -k 0 plain out)"
check "so is no number" "2" "$(code -k many plain out)"
check "and an unknown flag" "2" "$(code -x plain out)"
check "and a missing destination" "2" "$(code plain)"
check "a folder that is not there" "1" "$(code nothing out)"
[ $failures -eq 0 ] && echo "all is well"
exit $((failures > 0))
