# The notes of the version in VERSION, line by line.
set -o pipefail
read -r version day < VERSION
fail() {
    echo "FAIL: $1"
    exit 1
}

part=$(awk -v "head=## $version ($day)" '$0 == head { on = 1; next } /^## / { on = 0 } on && NF' CHANGES.md)
[ -n "$part" ] || fail "CHANGES.md has nothing under '## $version ($day)'"
grep -m 1 '^## ' CHANGES.md | grep -qF "$version" || fail "the newest version does not come first"
grep -q '^## 1.3.2' CHANGES.md || fail "the notes of older versions are gone"

groups=$(grep '^### ' <<< "$part" | tr -d '# ' | tr '\n' ' ')
[ "$groups" = "Added Changed Fixed " ] || fail "the groups are: $groups"
numbers=$(grep -o '(#[0-9]*)$' <<< "$part" | tr -d '(#)' | tr '\n' ' ')
[ "$numbers" = "38 43 40 41 " ] || fail "the entries are: $numbers"
entries=$(grep -v '^### ' <<< "$part")
if grep -vE '^- [A-Z`].*[^.] \(#[0-9]+\)$' <<< "$entries"; then fail "an entry has another form"; fi
if grep -iwE 'we|now' <<< "$entries"; then fail "a word that is not used"; fi
echo "all is well"
