#!/bin/sh
# Runs a node of a cluster. Its file is that of all nodes, with its own name in it: NODE=a trunkline-node FILE
set -eu
case ${NODE:?is the name of this node} in
  *[!A-Za-z0-9_-]*) echo "Error: NODE may have letters, digits, \`_\` and \`-\`." >&2; exit 2 ;;
esac
own=${TRUNKLINE_HOME:?is where this node keeps its files}/trunkline.toml
sed "s/@NODE@/$NODE/g" "${1:?is the file of all nodes}" > "$own"
exec trunkline up --config "$own"
