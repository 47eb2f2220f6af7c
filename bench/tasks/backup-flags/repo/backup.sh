#!/bin/bash
# See README.md.

usage() {
    echo "usage: backup.sh [-k COUNT] [-v] FOLDER DESTINATION"
    exit 1
}

verbose=0
while getopts "v" flag; do
    case $flag in
        v) verbose=1 ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 2 ] || usage
folder=$1
destination=$2

if [ ! -d $folder ]; then
    echo "backup.sh: there is no folder $folder" >&2
    exit 1
fi

name=$(basename $folder)
last=0
for file in $(ls $destination | grep "^$name-[0-9]*.tar$"); do
    number=${file#$name-}
    number=${number%.tar}
    [ $number -gt $last ] && last=$number
done

mkdir -p $destination
target=$destination/$name-$((last + 1)).tar
tar -cf $target -C $(dirname $folder) $name
[ $verbose -eq 1 ] && echo "made $target"
