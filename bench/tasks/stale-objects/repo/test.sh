# Works on a copy, so that nothing that was built before counts.
set -e
copy=$(mktemp -d)
trap 'rm -rf "$copy"' EXIT
cp -R . "$copy"
cd "$copy"
touch -d '2 hours ago' *.c *.h
make -s clean
make -s

fail() {
    echo "FAIL: $1"
    exit 1
}

# All that was built is old; what changes from here on is newer.
touch -d '1 hour ago' *.o hello
make -q || fail "there is nothing to do, and make does something"
echo '#define VERSION 2' > version.h
make -s
test "$(./hello)" = "hello world, from version 2" || fail "a changed header is not compiled in"

# As it is when somebody has put a file there.
touch -d '1 minute' check
if make -s check > /dev/null 2>&1; then fail "the check does not see that the output is wrong"; fi
echo 'hello world, from version 2' > check/expected.txt
make -s check 2>&1 || fail "the check fails"

make -s clean
test ! -e hello && test -z "$(ls | grep '\.[od]$')" || fail "something is left after make clean"
touch clean
make -s
make -s clean
test ! -e hello || fail "a file that is called clean keeps make from cleaning"
echo "all is well"
